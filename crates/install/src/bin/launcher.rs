//! The launcher on its own, for the tests of this crate. The product has no such program: `haft` enters by the same
//! function.

fn main() {
    sandbox::enter_if_launcher();
    std::process::exit(70);
}
