//! Functions: defined, called, their locals.

use std::collections::HashMap;
use std::rc::Rc;

use super::env::{Env, POSITIONAL, Value};
use super::flow::Way;
use super::walk::{Hidden, Walker};
use crate::facts::command::grammar::syntax::Command;
use crate::facts::command::words::expand::Field;
use crate::facts::command::words::text::{UNKNOWN, has_unknown};

/// How many calls of one function inside each other are followed with the arguments that they get.
const RECURSION: usize = 8;

/// A function being called.
pub(crate) struct Call {
    pub name: String,
    /// A function may be defined anew while it runs.
    pub body: Rc<Command>,
    /// Its name and arguments.
    pub items: Rc<Vec<String>>,
    pub variables: Rc<HashMap<String, Value>>,
}

impl Walker<'_> {
    pub(crate) fn define(&mut self, name: &str, body: &Rc<Command>) {
        Rc::make_mut(&mut self.env.functions).insert(name.to_owned(), vec![Some(Rc::clone(body))]);
        if super::forkbomb::is_bomb(name, body, &self.env.functions) {
            self.event("fork-bomb");
        }
    }

    /// Calls a function. What a name may be besides a function is left to the caller.
    pub(crate) fn call(&mut self, name: &str, body: &Rc<Command>, argv: &[Field]) -> String {
        let mut items: Vec<String> = argv.iter().map(|field| field.text.clone()).collect();
        let active = self.calls.iter().filter(|call| call.name == name).count();
        let again = |call: &Call, items: &[String], env: &Env| {
            Rc::ptr_eq(&call.body, body)
                && call.items.as_slice() == items
                && (Rc::ptr_eq(&call.variables, &env.variables) || call.variables == env.variables)
        };
        if active >= RECURSION && items.len() > 1 {
            // Whatever the deeper calls get.
            items.truncate(1);
            items.push(UNKNOWN.to_string());
        }
        let items = Rc::new(items);
        self.steps += 2 + active * (1 + self.env.variables.len() / 16);
        if active > 0 && self.calls.iter().any(|call| again(call, &items, &self.env)) {
            // The same call is being judged already.
            return UNKNOWN.to_string();
        }
        if active > RECURSION + 2 {
            if !items.iter().skip(1).all(|item| has_unknown(item)) {
                self.limited("depth of a recursion");
            }
            return UNKNOWN.to_string();
        }
        let variables = Rc::clone(&self.env.variables);
        self.calls.push(Call { name: name.to_owned(), body: Rc::clone(body), items: Rc::clone(&items), variables });
        let outer = self.env.positional.clone();
        let others = self.env.alternatives.get(POSITIONAL).cloned();
        self.env.set_positional(items.to_vec());
        self.locals.push(Vec::new());
        self.returns.push(Way::default());
        let loops = std::mem::take(&mut self.loops);
        let on_return = self.env.on_return.take();
        let printed = self.command(body);
        self.loops = loops;
        let mut way = self.returns.pop().unwrap_or_default();
        self.leave(&mut way);
        self.arrive(way);
        self.returned();
        self.env.on_return = self.env.on_return.take().or(on_return);
        self.restore_locals();
        self.env.set_positional(Vec::new());
        self.env.positional = outer;
        if let Some(others) = others {
            Rc::make_mut(&mut self.env.alternatives).insert(POSITIONAL.to_owned(), others);
        }
        self.calls.pop();
        printed
    }

    /// Whether the function at hand was called out of itself.
    pub(crate) fn recurs(&self) -> bool {
        self.calls.split_last().is_some_and(|(own, outer)| outer.iter().any(|call| call.name == own.name))
    }

    fn restore_locals(&mut self) {
        for Hidden { name, value, others, attributes, reference } in
            self.locals.pop().unwrap_or_default().into_iter().rev()
        {
            self.env.set_attributes(&name, attributes);
            let references = Rc::make_mut(&mut self.env.references);
            match reference {
                Some(reference) => references.insert(name.clone(), reference),
                None => references.remove(&name),
            };
            let variables = Rc::make_mut(&mut self.env.variables);
            match value {
                Some(value) => variables.insert(name.clone(), value),
                None => variables.remove(&name),
            };
            match others {
                Some(others) => {
                    Rc::make_mut(&mut self.env.alternatives).insert(name, others);
                }
                // A second owner makes each change a copy.
                None if self.env.alternatives.contains_key(&name) => {
                    Rc::make_mut(&mut self.env.alternatives).remove(&name);
                }
                None => {}
            }
        }
    }
}
