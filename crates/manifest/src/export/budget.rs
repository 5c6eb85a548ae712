//! As many definitions as fit into a budget of tokens, the first before the others.

use serde_json::{Value, json};

use super::{Export, HOW_ESTIMATED, Name, estimated};

/// What became of a budget.
#[derive(Debug)]
pub struct Spent {
    /// How much there was.
    pub budget: u64,
    /// How much of it what is left takes.
    pub used: u64,
    /// What did not fit, and how much it would have taken.
    pub left_out: Vec<(Name, u64)>,
}

impl Export {
    /// Leaves out what does not fit any more. What is too large for what is left stands in nobody's way: a smaller one after it
    /// is taken all the same.
    pub fn fit(&mut self, budget: u64) -> Spent {
        let mut spent = Spent { budget, used: 0, left_out: Vec::new() };
        let mut kept = Vec::new();
        for (definition, name) in self.definitions().iter().zip(&self.names) {
            let tokens = estimated(definition);
            let fits = tokens <= budget - spent.used;
            kept.push(fits);
            if fits {
                spent.used += tokens;
            } else {
                spent.left_out.push((name.clone(), tokens));
            }
        }
        self.keep(|at| kept[at]);
        let note = |(name, tokens): &(Name, u64)| {
            format!(
                "`{}` is left out: it takes about {tokens} tokens, and does not fit into the budget",
                name.exposed
            )
        };
        self.notes.extend(spent.left_out.iter().map(note));
        spent
    }
}

impl Spent {
    /// What it came to, for programs.
    pub fn to_value(&self) -> Value {
        let left_out = self.left_out.iter().map(|(name, tokens)| {
            json!({"exposed": name.exposed, "package": name.package, "action": name.action, "tokens": tokens})
        });
        json!({
            "tokens": self.budget,
            "used": self.used,
            "estimate": HOW_ESTIMATED,
            "left_out": left_out.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_what_is_too_large_stands_in_nobodys_way() {
        // Quotes and seven letters to a token less: 2, 30, 2 and 2 tokens.
        let texts = ["a".repeat(5), "b".repeat(103), "c".repeat(5), "d".repeat(5)];
        let name = |text: &String| Name {
            exposed: text[..1].to_owned(),
            package: "p".to_owned(),
            action: "x".to_owned(),
        };
        let exported = || Export {
            document: json!(texts),
            names: texts.iter().map(name).collect(),
            files: Vec::new(),
            notes: Vec::new(),
        };
        for (budget, kept, used) in
            [(1, "", 0), (4, "ac", 4), (5, "ac", 4), (6, "acd", 6), (36, "abcd", 36)]
        {
            let mut all = exported();
            let spent = all.fit(budget);
            let names: String = all.names.iter().map(|name| name.exposed.as_str()).collect();
            assert_eq!((names.as_str(), spent.used), (kept, used), "{budget}");
            assert_eq!(all.definitions().len(), kept.len());
            assert_eq!(all.notes.len() + kept.len(), 4);
        }
        let mut all = exported();
        let spent = all.fit(6);
        assert_eq!(
            all.notes,
            ["`b` is left out: it takes about 30 tokens, and does not fit into the budget"]
        );
        assert_eq!(spent.to_value()["left_out"][0]["tokens"], 30);
    }
}
