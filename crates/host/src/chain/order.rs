//! Which step of a chain may begin when: as soon as those that it reads from have ended.

/// What of a chain is still to come.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// For each step how many of those that it waits for have not ended.
    waits_for: Vec<usize>,
    /// For each step those that wait for it.
    awaited_by: Vec<Vec<usize>>,
    /// Steps that may begin, the last of the document first.
    ready: Vec<usize>,
}

impl Order {
    /// For each step it is said which earlier ones it comes after.
    pub(crate) fn new(after: &[Vec<usize>]) -> Self {
        let mut awaited_by = vec![Vec::new(); after.len()];
        for (step, before) in after.iter().enumerate() {
            for one in before {
                awaited_by[*one].push(step);
            }
        }
        let waits_for: Vec<_> = after.iter().map(Vec::len).collect();
        let ready = (0..after.len()).rev().filter(|step| waits_for[*step] == 0).collect();
        Self { waits_for, awaited_by, ready }
    }

    /// The next step that may begin now, in the order of the document.
    pub(crate) fn next(&mut self) -> Option<usize> {
        self.ready.pop()
    }

    /// A step has ended, or is left out.
    pub(crate) fn end(&mut self, step: usize) {
        for one in &self.awaited_by[step] {
            self.waits_for[*one] -= 1;
            if self.waits_for[*one] == 0 {
                self.ready.push(*one);
            }
        }
        self.ready.sort_unstable_by(|one, other| other.cmp(one));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Chains of up to twenty steps, each after some of those before it.
    fn chains() -> impl Strategy<Value = Vec<Vec<usize>>> {
        prop::collection::vec(any::<u32>(), 0..20).prop_map(|bits| {
            let before = |(step, bits): (usize, &u32)| {
                (0..step).filter(|one| bits >> one & 1 == 1).collect::<Vec<_>>()
            };
            bits.iter().enumerate().map(before).collect()
        })
    }

    proptest! {
        #[test]
        fn every_step_begins_once_and_as_soon_as_those_before_it_have_ended(
            after in chains(),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 20),
        ) {
            let mut order = Order::new(&after);
            let (mut begun, mut running, mut ended) = (Vec::new(), Vec::new(), Vec::new());
            for pick in picks {
                while let Some(step) = order.next() {
                    prop_assert!(after[step].iter().all(|one| ended.contains(one)));
                    prop_assert!(!begun.contains(&step));
                    begun.push(step);
                    running.push(step);
                }
                // Nobody waits who need not.
                let could_begin = |step: &usize| {
                    !begun.contains(step) && after[*step].iter().all(|one| ended.contains(one))
                };
                prop_assert!(!(0..after.len()).any(|step| could_begin(&step)));
                if running.is_empty() {
                    break;
                }
                let step = running.swap_remove(pick.index(running.len()));
                ended.push(step);
                order.end(step);
            }
            prop_assert_eq!(ended.len(), after.len());
        }
    }
}
