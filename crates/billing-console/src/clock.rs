//! The page of a sandbox's clock.

use billing_api::dto::clock::ClockJson;
use billing_api::json_view::JsonView;
use maud::{Markup, html};

use crate::parts::{facts, href, instant};

/// What an advance counts, with the field of the address that has the number.
pub(crate) const COUNTS: [(&str, &str); 4] =
    [("issued", "Documents issued"), ("voided", "Drafts voided"), ("notifications", "Notifications"), ("failed", "Failures")];

/// Renders the clock. `days` are the first and the last day of an advance, whose results `counts` contains.
pub(crate) fn clock(at: JsonView<'_, ClockJson>, days: Option<&[String; 2]>, counts: [u64; 4]) -> Markup {
    html! {
        h1 { "Clock of the sandbox" }
        @if let Some([first, last]) = days {
            p.notice role="status" {
                "The clock has moved on from " (first) ". "
                @for ((_, label), count) in COUNTS.iter().zip(counts) { (label) ": " strong { (count) } ". " }
            }
            p {
                a href={ (href(&["documents"])) "?issued_from=" (first) "&issued_to=" (last) } { "Documents issued meanwhile" }
                " · " a href=(href(&["billing-runs"])) { "Billing runs" }
                " · " a href={ (href(&["documents"])) "?overdue=true" } { "Overdue documents" }
            }
        }
        (facts(&[("The clock shows", instant(at.now())), ("Something is due next", instant(at.next()))]))
        p.muted {
            "The clock stands still until it is moved. On the way, the server issues documents and notifies as if it had run all the time. "
            "A sandbox cannot go back: start a new one."
        }
    }
}
