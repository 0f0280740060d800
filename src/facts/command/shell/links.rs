//! Links that the command itself made, and what files that it wrote may hold.

use super::walk::Walker;
use crate::facts::command::effects::target::Target;
use crate::facts::command::words::text::STAR;

/// Links that are followed in all, and one after the other.
const LINKS: usize = 64;
const HOPS: usize = 8;
/// The longest path that a kernel opens (`PATH_MAX`, limits.h). What links make of a path would grow with each of them.
const LONGEST: usize = 4096;

impl Walker<'_> {
    /// `destination` becomes a link to `source`, or gets one inside where it is a directory.
    pub(crate) fn remember_link(&mut self, source: &str, destination: &str, symbolic: bool) {
        let to = self.target_itself(destination);
        if !to.is_known() || to.path.is_empty() || self.links.len() >= LINKS {
            return;
        }
        let base = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let path = to.path.trim_end_matches('/').to_owned();
        // A symbolic link's text counts from where the link is.
        let place = path.rsplit_once('/').map_or("", |(place, _)| place);
        let goal =
            if symbolic && !source.starts_with(['/', '~']) { format!("{place}/{source}") } else { source.to_owned() };
        let goal = self.target(&goal);
        if goal.path.is_empty() || goal.path == path || goal.path.len() > LONGEST {
            return;
        }
        if !base.is_empty() && base != "." && base != ".." {
            self.links.push((format!("{path}/{base}"), goal.path.clone()));
        }
        // The root is a directory, and no link takes its place.
        if !path.is_empty() {
            self.links.push((path, goal.path));
        }
    }

    /// A link under another name: moved, or copied as a link.
    pub(crate) fn copy_link(&mut self, from: &str, to: &str) {
        let goal = self.links.iter().rev().find(|(link, _)| link == from).map(|(_, goal)| goal.clone());
        if let Some(goal) = goal
            && self.links.len() < LINKS
        {
            self.links.push((to.to_owned(), goal));
        }
    }

    /// Follows the links of this command. The last part of the path itself is followed where `last` says so.
    pub(crate) fn followed(&self, target: Target, last: bool) -> Target {
        let mut target = target;
        for _ in 0..HOPS {
            let path = target.path.as_str();
            let leads = |(link, _): &&(String, String)| match path.strip_prefix(link.as_str()) {
                Some("") => last || target.contents,
                Some(rest) => rest.starts_with('/'),
                None => false,
            };
            let Some((link, goal)) = self.links.iter().rev().find(leads) else { break };
            let rest = path.get(link.len()..).unwrap_or_default();
            let path = format!("{}{rest}", goal.trim_end_matches('/'));
            let path = match (target.contents, path.is_empty()) {
                (true, _) => format!("{path}/{STAR}"),
                (false, true) => "/".to_owned(),
                (false, false) => path,
            };
            if path.len() > LONGEST {
                break;
            }
            target = self.target_itself(&path);
        }
        target
    }
}
