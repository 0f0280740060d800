//! Functions: defined, called, their locals.

use std::rc::Rc;

use super::expand::Field;
use super::syntax::Command;
use super::text::UNKNOWN;
use super::walk::Walker;

impl Walker<'_> {
    pub(super) fn define(&mut self, name: &str, body: &Rc<Command>) {
        Rc::make_mut(&mut self.env.functions).insert(name.to_owned(), Rc::clone(body));
        if super::forkbomb::is_bomb(name, body, &self.env.functions) {
            self.event("fork-bomb");
        }
    }

    pub(super) fn call(&mut self, name: &str, body: &Rc<Command>, argv: &[Field]) -> String {
        if self.calls.iter().filter(|call| *call == name).count() >= 2 {
            // Recursion: its body is judged already.
            return UNKNOWN.to_string();
        }
        self.calls.push(name.to_owned());
        let items = argv.iter().map(|field| field.text.clone()).collect();
        let saved = self.env.positional.replace(Rc::new(items));
        self.locals.push(Vec::new());
        let printed = self.command(body);
        for (name, value, others) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            let variables = Rc::make_mut(&mut self.env.variables);
            match value {
                Some(value) => variables.insert(name.clone(), value),
                None => variables.remove(&name),
            };
            let alternatives = Rc::make_mut(&mut self.env.alternatives);
            match others {
                Some(others) => alternatives.insert(name, others),
                None => alternatives.remove(&name),
            };
        }
        self.env.positional = saved;
        self.calls.pop();
        printed
    }
}
