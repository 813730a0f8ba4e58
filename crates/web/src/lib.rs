//! The built web page, as files in the program. It may know nothing of the product: the page itself speaks to the API, and
//! the server decides who gets what. Begin with `page/README.md` for the page, and with `build.rs` for how it gets in here.

/// A file of the page.
pub struct File {
    /// As a browser asks for it, such as `/assets/index-1a2b.js`.
    pub path: &'static str,
    pub plain: &'static [u8],
    pub brotli: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
    /// For `ETag`: another content has another one.
    pub tag: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

impl File {
    /// What the file holds, by the ending of its name.
    pub fn content_type(&self) -> &'static str {
        match self.path.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("json" | "map") => "application/json",
            Some("webmanifest") => "application/manifest+json",
            _ => "application/octet-stream",
        }
    }

    /// Its name changes with its content, so that a browser may keep it for good.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with("/assets/")
    }

    /// The smallest form that the browser takes, and the name of its encoding.
    pub fn encoded(&self, accepts: &str) -> (&'static [u8], Option<&'static str>) {
        let takes = |coding: &str| {
            accepts.split(',').any(|part| {
                let mut words = part.split(';').map(str::trim);
                let named = words.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
                named && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
            })
        };
        match (self.brotli, self.gzip) {
            (Some(brotli), _) if takes("br") => (brotli, Some("br")),
            (_, Some(gzip)) if takes("gzip") => (gzip, Some("gzip")),
            _ => (self.plain, None),
        }
    }
}

/// The file at a path.
pub fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// The page itself; `None` where the program was built without it.
pub fn index() -> Option<&'static File> {
    file("/index.html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> File {
        File { path: "/assets/a-1.js", plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz"), tag: "\"1\"" }
    }

    #[test]
    fn a_browser_gets_the_smallest_form_that_it_takes() {
        let file = example();
        assert_eq!(file.encoded("gzip, deflate, br"), (&b"br"[..], Some("br")));
        assert_eq!(file.encoded("gzip;q=0.5, br;q=0"), (&b"gz"[..], Some("gzip")));
        assert_eq!(file.encoded("identity"), (&b"plain"[..], None));
        assert_eq!(file.encoded(""), (&b"plain"[..], None));
    }

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let Some(index) = index() else {
            // A machine without npm builds without the page; where nothing may be left out, that is a failure.
            assert!(
                std::env::var_os("CI").is_none(),
                "the page is not built in: npm is missing, or it failed"
            );
            return;
        };
        let text = std::str::from_utf8(index.plain).expect("it is text");
        let named =
            text.split('"').filter(|part| part.starts_with("/assets/") || part.starts_with("/favicon"));
        for path in named {
            assert!(file(path).is_some(), "{path}");
        }
    }
}
