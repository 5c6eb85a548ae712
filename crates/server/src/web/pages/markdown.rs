//! Markdown of strangers as HTML that does nothing.
//!
//! The parser gives events; every tag that leaves this file is written here, so that there is no list of what is
//! taken out, only one of what is put in. HTML in the text is shown as text, pictures are their descriptions,
//! addresses are links only when [`outside`] knows them.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::inert::escaped;
use super::link::outside;

/// The most bytes that are written; the rest is left out.
const MOST: usize = 512 << 10;
/// How deep quotes and lists go into one another.
const DEEPEST: usize = 16;
/// The heading that the text stands beneath.
const ABOVE: usize = 2;

/// A text as HTML.
pub(super) fn render(text: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut writer =
        Writer { out: String::new(), open: Vec::new(), headings: Vec::new(), head: false };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
        if writer.out.len() > MOST {
            writer.out.push('…');
            break;
        }
    }
    while let Some(open) = writer.open.pop() {
        writer.out.push_str(open.end);
    }
    writer.out
}

/// A tag that is open: where it began, and how it is closed.
struct Open {
    start: usize,
    end: &'static str,
    instead: Option<String>,
}

struct Writer {
    out: String,
    open: Vec<Open>,
    /// The levels of the headings above, as they were written.
    headings: Vec<HeadingLevel>,
    /// Whether the cells are those of a table's head.
    head: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.out.push_str(&escaped(&text));
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.push_str("<code>");
                self.out.push_str(&escaped(&text));
                self.out.push_str("</code>");
            }
            Event::FootnoteReference(name) => {
                self.out.push_str(&escaped(&format!("[^{name}]")));
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let (start, end): (String, &'static str) = match tag {
            Tag::Paragraph | Tag::HtmlBlock => ("<p>".to_owned(), "</p>\n"),
            Tag::Heading { level, .. } => self.heading(*level),
            Tag::BlockQuote(_) => ("<blockquote>".to_owned(), "</blockquote>\n"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) if !language.is_empty() => language.as_ref(),
                    _ => "plain",
                };
                let language = escaped(language.split_whitespace().next().unwrap_or("plain"));
                let start = format!("<pre tabindex=\"0\"><code data-language=\"{language}\">");
                (start, "</code></pre>\n")
            }
            Tag::MetadataBlock(_) => ("<pre tabindex=\"0\"><code>".to_owned(), "</code></pre>\n"),
            Tag::List(None) => ("<ul>".to_owned(), "</ul>\n"),
            Tag::List(Some(first)) => {
                (format!("<ol start=\"{}\">", (*first).min(9_999)), "</ol>\n")
            }
            Tag::Item => ("<li>".to_owned(), "</li>\n"),
            Tag::Table(_) => {
                let start = "<div class=\"wide\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>";
                (start.to_owned(), "</table></div>\n")
            }
            Tag::TableHead => {
                self.head = true;
                ("<thead><tr>".to_owned(), "</tr></thead>\n")
            }
            Tag::TableRow => ("<tr>".to_owned(), "</tr>\n"),
            Tag::TableCell if self.head => ("<th scope=\"col\">".to_owned(), "</th>"),
            Tag::TableCell => ("<td>".to_owned(), "</td>"),
            Tag::Emphasis => ("<em>".to_owned(), "</em>"),
            Tag::Strong => ("<strong>".to_owned(), "</strong>"),
            Tag::Strikethrough => ("<del>".to_owned(), "</del>"),
            Tag::Link { dest_url, .. } => match outside(dest_url) {
                Some(address) => {
                    let start = format!("<a href=\"{}\" rel=\"{REL}\">", escaped(address));
                    return self.push(start, "</a>", Some(escaped(address)));
                }
                None => ("<span class=\"nowhere\">".to_owned(), "</span>"),
            },
            Tag::Image { .. } => {
                let start = "<span class=\"picture\">".to_owned();
                return self.push(start, "</span>", Some("picture".to_owned()));
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript => (String::new(), ""),
        };
        self.push(start, end, None);
    }

    /// Opens a tag, unless too many are open. `instead` is what it holds when there is nothing in it.
    fn push(&mut self, start: String, end: &'static str, instead: Option<String>) {
        let (start, end) =
            if self.open.len() < DEEPEST { (start, end) } else { (String::new(), "") };
        self.out.push_str(&start);
        self.open.push(Open { start: self.out.len(), end, instead });
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::TableHead {
            self.head = false;
        }
        let Some(open) = self.open.pop() else { return };
        if let Some(instead) = open.instead
            && self.out[open.start..].trim().is_empty()
        {
            self.out.push_str(&instead);
        }
        if matches!(tag, TagEnd::Heading(_)) && self.out[open.start..].trim().is_empty() {
            self.out.push('…');
        }
        self.out.push_str(open.end);
    }

    /// Headings go down by one step at a time, whatever the author wrote, and begin beneath ours.
    fn heading(&mut self, level: HeadingLevel) -> (String, &'static str) {
        while self.headings.last().is_some_and(|above| *above >= level) {
            self.headings.pop();
        }
        self.headings.push(level);
        match ABOVE + self.headings.len() {
            3 => ("<h3>".to_owned(), "</h3>\n"),
            4 => ("<h4>".to_owned(), "</h4>\n"),
            5 => ("<h5>".to_owned(), "</h5>\n"),
            _ => ("<h6>".to_owned(), "</h6>\n"),
        }
    }
}

/// Links of strangers are nothing we vouch for, and learn nothing of us.
pub(super) const REL: &str = "nofollow noopener noreferrer ugc";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_laid_out() {
        let html = render(
            "# Title\n\nSome *text* with `code`.\n\n- one\n- [x] two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        );
        for part in [
            "<h3>Title</h3>",
            "<em>text</em>",
            "<code>code</code>",
            "<ul><li>one</li>",
            "☑ two",
            "<th scope=\"col\">a</th>",
            "<td>2</td>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        let html = render("```sh\nhaft <x>\n```\n[a](https://example.com/?a=1&b=\"2)");
        assert!(html.contains("<code data-language=\"sh\">haft &#60;x&#62;\n</code>"), "{html}");
        let html = render("[a](https://example.com/?a=1&b=2 \"t\")");
        assert_eq!(
            html,
            format!("<p><a href=\"https://example.com/?a=1&#38;b=2\" rel=\"{REL}\">a</a></p>\n")
        );
    }

    #[test]
    fn headings_never_skip_a_level() {
        let html = render("#### a\n# b\n### c\n# d\n## e\n### f\n#### g\n##### h\n");
        let levels: Vec<&str> =
            html.match_indices("<h").map(|(at, _)| &html[at + 2..=at + 2]).collect();
        assert_eq!(levels, ["3", "3", "4", "3", "4", "5", "6", "6"]);
    }

    #[test]
    fn nothing_runs_and_nothing_is_fetched() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=\"x\">\n\n</div>",
            "[x](javascript:alert(1))",
            "[x](<java\nscript:alert(1)>)",
            "[x](java&#x0a;script:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x]: data:text/html,<script>\n\n[x]",
            "![x](https://example.com/track.png)",
            "![](https://example.com/track.png)",
            "<javascript:alert(1)>",
            "[x](https://a\" onmouseover=\"alert(1))",
            "[x](https://a 'title\" onmouseover=\"alert(1)')",
            "```\" onmouseover=\"alert(1)\nx\n```",
            "# x {onclick=alert(1) #id .class}",
            "<style>*{display:none}</style>",
            "<!-- -->",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
        ] {
            let html = render(text);
            let known = [
                "p", "/p", "a", "/a", "span", "/span", "pre", "/pre", "code", "/code", "h3", "/h3",
            ];
            for (at, _) in html.match_indices('<') {
                let tag = &html[at + 1..at + html[at..].find('>').unwrap()];
                let mut words = tag.split(' ');
                let name = words.next().unwrap();
                assert!(known.contains(&name), "{text}: {html}");
                for attribute in words {
                    let is_known = ["href=", "rel=", "class=", "tabindex=", "data-language="]
                        .iter()
                        .any(|known| attribute.starts_with(known));
                    let is_rel = REL.split(' ').any(|word| attribute.trim_end_matches('"') == word);
                    assert!(is_known || is_rel, "{text}: {html}");
                }
            }
            let lower = html.to_lowercase();
            assert!(!lower.contains("href=\"java") && !lower.contains("href=\"data"), "{html}");
        }
    }

    #[test]
    fn what_is_deep_or_long_is_bounded_and_closed() {
        for text in [
            format!("{}x", "> ".repeat(20_000)),
            "- ".repeat(5_000),
            "*a **a ".repeat(5_000),
            "[a](".repeat(10_000),
            "![[".repeat(10_000),
            format!("|{}\n|{}\n{}", "a|".repeat(500), "-|".repeat(500), "|\n".repeat(5_000)),
            "<".repeat(50_000),
            "`".repeat(50_000),
        ] {
            let begun = std::time::Instant::now();
            let html = render(&text);
            assert!(html.len() < MOST + (64 << 10), "{}", html.len());
            assert!(begun.elapsed().as_secs() < 10, "{:?} {}", begun.elapsed(), &text[..20]);
            for tag in ["p", "blockquote", "ul", "li", "table", "tr", "a"] {
                let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
                let opened = html.matches(&format!("{open}>")).count()
                    + html.matches(&format!("{open} ")).count();
                assert_eq!(opened, html.matches(&close).count(), "{tag}");
            }
        }
        assert!(render("[](https://example.com/)").contains(">https://example.com/</a>"));
    }
}
