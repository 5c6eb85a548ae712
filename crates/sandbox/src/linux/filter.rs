//! A compiler from answers for system calls to the kernel's filter language.
//!
//! The kernel runs a new filter over every call number once, to learn which it
//! need not ask about again, so a filter that is searched in halves is put on
//! in a twentieth of the time of one that goes through a list.

use crate::level::Fault;

/// One instruction.
type Instruction = libc::sock_filter;

/// What is answered to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Allow,
    /// Not done, with this error number.
    Refuse(i32),
    /// Allowed when one of these holds, each a list of conditions that must all hold; else
    /// refused with this error number.
    AllowIf(Vec<Vec<Condition>>, i32),
}

/// A condition on the lower half of an argument. All that are looked at are `int`s to the
/// kernel, which does not look at the upper half either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) argument: u8,
    pub(crate) test: Test,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Is(u32),
    IsNot(u32),
    /// The bits of the first, compared with the second.
    MaskedIs(u32, u32),
}

/// A filter, ready to be put on.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    program: Vec<Instruction>,
}

const LOAD: u16 = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
const EQUAL: u16 = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
const AT_LEAST: u16 = code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
const GO: u16 = code(libc::BPF_JMP | libc::BPF_JA);
const MASK: u16 = code(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K);
const RETURN: u16 = code(libc::BPF_RET | libc::BPF_K);

/// An instruction's code, which the headers give as a wider number.
#[expect(clippy::cast_possible_truncation, reason = "every code fits in a byte")]
const fn code(bits: u32) -> u16 {
    bits as u16
}

/// Where the kernel lays out what a filter sees: number, table, instruction pointer, arguments.
const NUMBER: u32 = 0;
const TABLE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The table of system calls that this program was made for.
#[cfg(target_arch = "x86_64")]
const THIS_TABLE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_TABLE: u32 = 0xc000_00b7;

impl Filter {
    /// Compiles the answers to single calls, in the order of their numbers; to all
    /// others the last is given. Calls of another table kill the process.
    pub(crate) fn compile(calls: &[(u32, Answer)], others: &Answer) -> Self {
        let program = Assembler::default().whole(&ranges(calls, others));
        Self { program }
    }

    /// Puts the filter on this thread and all it starts, for good. It must have given up new
    /// privileges already.
    pub(crate) fn enter(&self) -> Result<(), Fault> {
        let fault = |errno| Fault { doing: "put on the list of system calls".into(), errno };
        let length = self.program.len().try_into().map_err(|_| fault(libc::EINVAL))?;
        let program = libc::sock_fprog { len: length, filter: self.program.as_ptr().cast_mut() };
        // SAFETY: the structure points to as many instructions as it says, which the kernel
        // copies and checks.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        };
        match result {
            0 => Ok(()),
            _ => Err(fault(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))),
        }
    }
}

/// Runs of numbers with one answer, each by its first number, from zero.
fn ranges(calls: &[(u32, Answer)], others: &Answer) -> Vec<(u32, Answer)> {
    let mut ranges: Vec<(u32, Answer)> = vec![(0, others.clone())];
    let mut begin = |number: u32, answer: &Answer| {
        let (first, last) = ranges.last_mut().expect("there is always one range");
        if *first == number {
            *last = answer.clone();
        } else if last != answer {
            ranges.push((number, answer.clone()));
        }
    };
    for (index, (number, answer)) in calls.iter().enumerate() {
        begin(*number, answer);
        let next = calls.get(index + 1).map(|(number, _)| *number);
        if next != Some(number + 1) {
            begin(number + 1, others);
        }
    }
    ranges
}

/// Puts a filter together from its end to its beginning: jumps only go forward, so where one goes to is there already.
///
/// What is said often, the words that end a filter, is shared by all that say it. A short filter
/// is put on faster: the kernel translates it for every process anew.
#[derive(Default)]
struct Assembler {
    /// The instructions, the last first.
    backwards: Vec<Instruction>,
    /// The words that end a filter, and where each was said last.
    ends: Vec<(u32, Label)>,
}

/// An instruction, by how many were there before it.
type Label = usize;

/// How far a conditional jump reaches, with room for two unconditional ones that reach any distance.
const REACH: usize = 250;

impl Assembler {
    fn whole(mut self, ranges: &[(u32, Answer)]) -> Vec<Instruction> {
        let search = self.search(ranges);
        self.go(search);
        let number = self.push(load(NUMBER));
        let kill = self.end(libc::SECCOMP_RET_KILL_PROCESS);
        self.branch(EQUAL, THIS_TABLE, number, kill);
        self.push(load(TABLE));
        self.backwards.reverse();
        self.backwards
    }

    /// Finds the range of the number that was loaded, in halves.
    fn search(&mut self, ranges: &[(u32, Answer)]) -> Label {
        let [(_, answer)] = ranges else {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let first = high[0].0;
            let (high, low) = (self.search(high), self.search(low));
            return self.branch(AT_LEAST, first, high, low);
        };
        match answer {
            Answer::Allow => self.end(libc::SECCOMP_RET_ALLOW),
            Answer::Refuse(errno) => self.end(refusal(*errno)),
            Answer::AllowIf(alternatives, errno) => {
                let refuse = self.end(refusal(*errno));
                alternatives.iter().rev().fold(refuse, |next, all| self.all_hold(all, next))
            }
        }
    }

    /// Allows when all conditions hold, else goes on elsewhere.
    fn all_hold(&mut self, conditions: &[Condition], otherwise: Label) -> Label {
        let allow = self.end(libc::SECCOMP_RET_ALLOW);
        conditions.iter().rev().fold(allow, |next, condition| {
            match condition.test {
                Test::Is(value) => self.branch(EQUAL, value, next, otherwise),
                Test::IsNot(value) => self.branch(EQUAL, value, otherwise, next),
                Test::MaskedIs(mask, value) => {
                    self.branch(EQUAL, value, next, otherwise);
                    self.push(Instruction { code: MASK, jt: 0, jf: 0, k: mask })
                }
            };
            self.push(load(ARGUMENTS + u32::from(condition.argument) * 8))
        })
    }

    fn push(&mut self, instruction: Instruction) -> Label {
        self.backwards.push(instruction);
        self.backwards.len() - 1
    }

    /// How many instructions the next one would jump over.
    fn distance(&self, to: Label) -> usize {
        self.backwards.len() - to - 1
    }

    fn end(&mut self, word: u32) -> Label {
        let said = self.ends.iter().rev().find(|(said, _)| *said == word);
        match said {
            Some((_, label)) if self.distance(*label) <= REACH / 2 => *label,
            _ => {
                let label = self.push(Instruction { code: RETURN, jt: 0, jf: 0, k: word });
                self.ends.push((word, label));
                label
            }
        }
    }

    /// Makes sure that what comes before goes there, when it does not jump.
    fn go(&mut self, to: Label) -> Label {
        let distance = self.distance(to);
        if distance == 0 {
            return to;
        }
        let k = u32::try_from(distance).expect("a filter is short");
        self.push(Instruction { code: GO, jt: 0, jf: 0, k })
    }

    fn branch(&mut self, code: u16, k: u32, if_true: Label, if_false: Label) -> Label {
        let [if_true, if_false] =
            [if_true, if_false].map(|to| if self.distance(to) > REACH { self.go(to) } else { to });
        let [jt, jf] = [if_true, if_false]
            .map(|to| u8::try_from(self.distance(to)).expect("nothing near is out of reach"));
        self.push(Instruction { code, jt, jf, k })
    }
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jt: 0, jf: 0, k: offset }
}

fn refusal(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | (errno.unsigned_abs() & libc::SECCOMP_RET_DATA)
}

#[cfg(test)]
impl Filter {
    /// What the kernel would answer: the language, run by hand.
    pub(crate) fn answer(&self, table: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut loaded: u32 = 0;
        let mut at = 0;
        loop {
            let Instruction { code, jt, jf, k } = self.program[at];
            at += 1;
            match code {
                LOAD => {
                    loaded = match k {
                        NUMBER => number,
                        TABLE => table,
                        offset => {
                            let index = (offset - ARGUMENTS) / 8;
                            (arguments[index as usize] & 0xffff_ffff) as u32
                        }
                    }
                }
                MASK => loaded &= k,
                GO => at += k as usize,
                EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
                AT_LEAST => at += usize::from(if loaded >= k { jt } else { jf }),
                RETURN => return k,
                _ => panic!("no such instruction: {code}"),
            }
        }
    }

    pub(crate) fn here(&self, number: u32, arguments: [u64; 6]) -> u32 {
        self.answer(THIS_TABLE, number, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(errno: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
    }

    #[test]
    fn every_number_gets_its_own_answer() {
        let calls: Vec<_> = [3, 4, 5, 9, 10, 200, 201, 4000]
            .into_iter()
            .map(|number| match number {
                9 => (number, Answer::Refuse(libc::EPERM)),
                _ => (number, Answer::Allow),
            })
            .collect();
        let filter = Filter::compile(&calls, &Answer::Refuse(libc::ENOSYS));
        for number in (0..5000).chain([u32::MAX, 0x4000_0003]) {
            let expected = match calls.iter().find(|(call, _)| *call == number) {
                Some((9, _)) => errno(libc::EPERM),
                Some(_) => libc::SECCOMP_RET_ALLOW,
                None => errno(libc::ENOSYS),
            };
            assert_eq!(filter.here(number, [0; 6]), expected, "{number}");
        }
        assert_eq!(filter.answer(0x4000_0003, 3, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn a_filter_longer_than_a_jump_reaches_is_right_too() {
        let calls: Vec<_> = (0..3000_u32)
            .map(|number| {
                let first = Condition { argument: 0, test: Test::Is(number) };
                (number, Answer::AllowIf(vec![vec![first]], (number % 90 + 1).cast_signed()))
            })
            .collect();
        let filter = Filter::compile(&calls, &Answer::Refuse(libc::ENOSYS));
        for number in 0..3000_u32 {
            assert_eq!(filter.here(number, [number.into(); 6]), libc::SECCOMP_RET_ALLOW);
            let refused = filter.here(number, [u64::from(number) + 1; 6]);
            assert_eq!(refused, errno((number % 90 + 1).cast_signed()), "{number}");
        }
        assert_eq!(filter.here(3000, [0; 6]), errno(libc::ENOSYS));
    }

    #[test]
    fn one_list_of_conditions_must_hold_and_upper_halves_do_not_count() {
        let is = |argument, test| Condition { argument, test };
        let either = vec![
            vec![is(0, Test::Is(1)), is(1, Test::MaskedIs(0xf, 2))],
            vec![is(0, Test::IsNot(7)), is(5, Test::Is(9))],
        ];
        let calls = [(50, Answer::AllowIf(either, libc::EACCES))];
        let filter = Filter::compile(&calls, &Answer::Refuse(libc::ENOSYS));
        let ask = |first: u64, second: u64, last: u64| {
            filter.here(50, [first, second, 0, 0, 0, last]) == libc::SECCOMP_RET_ALLOW
        };
        assert!(ask(1, 0xff2, 0));
        assert!(ask(1 | (5 << 32), 2, 0));
        assert!(!ask(1, 3, 0));
        assert!(!ask(2, 2, 0));
        assert!(ask(2, 0, 9));
        assert!(!ask(7, 0, 9));
        assert!(!ask(7 | (1 << 40), 0, 9));
    }
}
