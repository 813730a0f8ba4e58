//! stub
pub const PROTOCOL: &str = "claude";
/// Millionths of a dollar, rounded up: a price is never less than it was.
pub(super) fn micros(usd: f64) -> u64 {
    if usd.is_finite() && usd > 0.0 { (usd * 1e6 - 1e-6).ceil() as u64 } else { 0 }
}
pub(super) fn deny(_line: &[u8], _reason: &str) -> Option<Vec<u8>> {
    None
}
