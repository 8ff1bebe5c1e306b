//! The pages of the documentation, rendered from the Markdown files of the repository that are part of the program.

use std::collections::HashMap;

use maud::PreEscaped;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};

use super::search::Entry;

/// The pages are below this path.
pub(super) const PAGES: &str = "/docs/pages";

macro_rules! sources {
    ($($name:literal),+ $(,)?) => { &[$(($name, include_str!(concat!("../../../../docs/", $name, ".md")))),+] };
}

/// The names of the pages, which are their paths in the folder `docs`, and their Markdown.
const SOURCES: &[(&str, &str)] = sources![
    "concepts",
    "api",
    "guides/first-integration",
    "guides/seats",
    "guides/trials",
    "guides/annual-plans",
    "guides/price-rises",
    "guides/corrections",
    "guides/tokens-by-model",
    "guides/spend-limits",
    "guides/prepaid-credit",
    "guides/usage-from-other-systems",
    "guides/void-credit-or-edit",
    "guides/time-zones",
    "guides/payment-provider",
    "guides/mirror-documents",
    "guides/test-your-billing",
    "billing-rules",
    "formats",
    "notifications",
    "webhooks",
    "e-invoices",
    "operations",
    "security",
];

/// A page of the documentation.
pub(super) struct Page {
    pub(super) address: String,
    pub(super) title: String,
    /// The first paragraph.
    pub(super) summary: String,
    pub(super) body: PreEscaped<String>,
    sections: Vec<Section>,
}

/// A heading with the text below it.
struct Section {
    heading: String,
    anchor: String,
    text: String,
}

/// Renders all pages.
pub(super) fn all() -> Vec<Page> {
    SOURCES.iter().map(|(name, markdown)| Page::of(name, markdown)).collect()
}

/// Returns the address of a page.
pub(super) fn address(name: &str) -> String {
    format!("{PAGES}/{name}")
}

impl Page {
    fn of(name: &str, markdown: &str) -> Self {
        let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
        let sections = number_headings(&mut events);
        let mut body = String::new();
        html::push_html(&mut body, shown(name, events).into_iter());
        let title = sections.first().map_or_else(|| name.to_owned(), |first| first.heading.clone());
        let summary = sections.first().map(|first| first.summary().to_owned()).unwrap_or_default();
        Self { address: address(name), title, summary, body: PreEscaped(body), sections }
    }

    /// Returns what the search finds: the page itself and its sections.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.sections.iter().enumerate().map(|(index, section)| {
            let is_page = index == 0;
            let title = if is_page { self.title.clone() } else { format!("{}: {}", self.title, section.heading) };
            let address = if is_page { self.address.clone() } else { format!("{}#{}", self.address, section.anchor) };
            Entry::new(title, section.summary().to_owned(), address, &section.text)
        })
    }
}

impl Section {
    /// Returns the first paragraph.
    fn summary(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }
}

/// Gives headings the anchors that file hosts give them, and returns the sections.
fn number_headings(events: &mut [Event<'_>]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<(usize, String)> = None;
    for index in 0..events.len() {
        let event = events.get(index).cloned();
        match event {
            Some(Event::Start(Tag::Heading { .. })) => heading = Some((index, String::new())),
            Some(Event::End(TagEnd::Heading(_))) => {
                let Some((start, heading)) = heading.take() else { continue };
                let anchor = anchor_of(&heading, &mut times);
                if let Some(Event::Start(Tag::Heading { id, .. })) = events.get_mut(start) {
                    *id = Some(anchor.clone().into());
                }
                sections.push(Section { heading, anchor, text: String::new() });
            }
            Some(Event::Text(text) | Event::Code(text)) => match (&mut heading, sections.last_mut()) {
                (Some((_, heading)), _) => heading.push_str(&text),
                (None, Some(section)) => section.text.push_str(&text),
                (None, None) => {}
            },
            Some(Event::SoftBreak) => sections.last_mut().into_iter().for_each(|section| section.text.push(' ')),
            // The first line of a section is its first paragraph.
            Some(Event::End(TagEnd::Paragraph)) => sections.last_mut().into_iter().for_each(Section::end_line),
            Some(Event::End(TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock)) => {
                sections.last_mut().into_iter().for_each(|section| section.text.push(' '));
            }
            _ => {}
        }
    }
    sections
}

/// Returns the anchor of a heading: its letters in lower case with hyphens, and a number if the page has it already.
fn anchor_of(heading: &str, times: &mut HashMap<String, usize>) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    let anchor: String = kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect();
    let known = times.entry(anchor.clone()).or_default();
    *known += 1;
    if *known == 1 { anchor } else { format!("{anchor}-{}", *known - 1) }
}

/// Returns what is shown of a page. Links lead to other pages of the program or to other sites; the text of any other link remains.
/// Pictures are left out, and HTML is text.
fn shown<'m>(name: &str, events: Vec<Event<'m>>) -> Vec<Event<'m>> {
    let mut shown = Vec::with_capacity(events.len());
    let mut is_linked = Vec::new();
    let mut pictures = 0_usize;
    for event in events {
        match event {
            Event::Start(Tag::Image { .. }) => pictures += 1,
            Event::End(TagEnd::Image) => pictures -= 1,
            _ if pictures > 0 => {}
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = target(name, &dest_url);
                is_linked.push(target.is_some());
                if let Some(target) = target {
                    shown.push(Event::Start(Tag::Link { link_type, dest_url: target.into(), title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if is_linked.pop() == Some(true) {
                    shown.push(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                shown.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language.into()))));
            }
            Event::Html(text) | Event::InlineHtml(text) => shown.push(Event::Text(text)),
            other => shown.push(other),
        }
    }
    shown
}

/// Returns the address that a link of a page leads to, or `None` if it is not part of the program.
fn target(name: &str, link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
        return Some(link.to_owned());
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let mut folders: Vec<&str> = name.split('/').collect();
    folders.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(folders.pop()?),
            part => folders.push(part),
        }
    }
    let path = folders.join("/");
    let found = path.strip_suffix(".md").filter(|name| SOURCES.iter().any(|(known, _)| known == name))?;
    Some(anchor.map_or_else(|| address(found), |anchor| format!("{}#{anchor}", address(found))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_for_users_are_part_of_the_program() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let for_contributors = ["architecture", "library", "performance", "reliability"];
        for (folder, prefix) in [("", ""), ("/guides", "guides/")] {
            for entry in std::fs::read_dir(format!("{docs}{folder}")).expect("a folder") {
                let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
                let Some(name) = name.strip_suffix(".md").filter(|name| !for_contributors.contains(name)) else { continue };
                assert!(SOURCES.iter().any(|(known, _)| *known == format!("{prefix}{name}")), "{prefix}{name} is missing");
            }
        }
    }

    #[test]
    fn html_is_text_and_pictures_and_links_to_elsewhere_are_left_out() {
        let page = Page::of(
            "guides/x",
            "# A <b>title</b>\n\nSee [one](../api.md#log-in), [two](../../src/x.rs).\n\n![p](y.png)\n\n## A title\n\n## A title\n",
        );
        let body = page.body.0;
        assert!(body.contains("&lt;b&gt;") && !body.contains("<b>") && !body.contains("<img"), "{body}");
        assert!(body.contains("<a href=\"/docs/pages/api#log-in\">one</a>, two."), "{body}");
        assert!(body.contains("id=\"a-title\"") && body.contains("id=\"a-title-1\""), "{body}");
        assert_eq!(page.summary, "See one, two.");
    }

    #[test]
    fn the_search_finds_sections() {
        let entries: Vec<Entry> = all().iter().flat_map(Page::entries).collect();
        let found = super::super::search::find(&entries, "sandbox clock");
        assert!(found.shown.iter().any(|entry| entry.address == "/docs/pages/operations#sandbox"), "{}", found.count);
    }
}
