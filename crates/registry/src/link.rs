//! Where a list goes on, as the header `Link` says it.

use egress::http::{HeaderMap, Url};

/// The address of the next page of a list that was found at an address.
pub(crate) fn next(headers: &HeaderMap, from: &Url) -> Option<Url> {
    let lines = headers.get_all("link").iter().filter_map(|line| line.to_str().ok());
    let links = lines.flat_map(|line| line.split('<').skip(1));
    let mut links = links.filter_map(|link| link.split_once('>'));
    let is_next = |parameter: &str| {
        let named = parameter.trim().trim_end_matches(',').trim_end().split_once('=');
        named.is_some_and(|(name, value)| {
            let mut words = value.trim_matches('"').split(' ');
            name.eq_ignore_ascii_case("rel") && words.any(|word| word.eq_ignore_ascii_case("next"))
        })
    };
    let (target, _) = links.find(|(_, parameters)| parameters.split(';').any(is_next))?;
    from.join(target).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_other_links() {
        let from = Url::parse("https://tools.example.com/v1/catalog.json").unwrap();
        let next = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("link", line.parse().unwrap());
            }
            next(&headers, &from).map(String::from)
        };
        let second = Some("https://tools.example.com/v1/catalog.json?after=a,b&limit=9".to_owned());
        for lines in [
            &["<https://tools.example.com/v1/catalog.json?after=a,b&limit=9>; rel=\"next\""][..],
            &["</x>; rel=prev, <?after=a,b&limit=9>; title=\"a\"; rel=\"last NEXT\", </y>; rel=up"],
            &["</x>; rel=\"prev\"", "<catalog.json?after=a,b&limit=9>;rel=next"],
        ] {
            assert_eq!(next(lines), second, "{lines:?}");
        }
        for lines in [&[][..], &["</x>; rel=\"prev\""], &["next"], &["</x>; rel=nextish"]] {
            assert_eq!(next(lines), None, "{lines:?}");
        }
    }
}
