//! Times as `tk` writes them: UTC, in seconds.

use kernel::Millis;

/// Days from 0000-03-01, in eras of 400 years, to the epoch: the leap day is then the last of its year.
const EPOCH_DAYS: i64 = 719_468;

/// The time as `tk` writes it.
pub(super) fn write(at: Millis) -> String {
    let seconds = at.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let days = days + EPOCH_DAYS;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod test {
    use super::write;

    #[test]
    fn times_are_written_as_tk_writes_them() {
        assert_eq!(write(0), "1970-01-01T00:00:00Z");
        assert_eq!(write(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(write(1_773_576_123_999), "2026-03-15T12:02:03Z");
    }
}
