//! The texts of a document, and how much each counts.

/// Where in a document a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// What it is called, and its id.
    Name,
    /// One line on what it does.
    Summary,
    /// More about it.
    Description,
    /// Words to find it by.
    Tags,
    /// Names of its actions.
    Actions,
    /// What its actions say about themselves.
    ActionTexts,
    /// Names of parameters.
    Parameters,
    /// What parameters say about themselves.
    ParameterTexts,
}

/// How a field counts.
///
/// The usual length is fixed, not the average of the index: so what a word is worth in a document
/// depends on that document alone, and is worked out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) weight: f32,
    /// How far a longer text makes its words count less, from 0 to 1.
    pub(crate) by_length: f32,
    pub(crate) usual_length: f32,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// Every field with its name.
    pub const ALL: [(Field, &'static str); Self::COUNT] = [
        (Field::Name, "name"),
        (Field::Summary, "summary"),
        (Field::Description, "description"),
        (Field::Tags, "tags"),
        (Field::Actions, "actions"),
        (Field::ActionTexts, "action_texts"),
        (Field::Parameters, "parameters"),
        (Field::ParameterTexts, "parameter_texts"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// How many times a word counts here, compared with a description.
    pub fn weight(self) -> f32 {
        self.scale().weight
    }

    /// How far a longer text makes its words count less, from 0 to 1.
    pub fn by_length(self) -> f32 {
        self.scale().by_length
    }

    /// The length, in words, at which that changes nothing.
    pub fn usual_length(self) -> f32 {
        self.scale().usual_length
    }

    pub(crate) fn scale(self) -> Scale {
        let (weight, by_length, usual_length) = match self {
            Field::Name => (2.0, 0.5, 3.0),
            Field::Summary => (1.0, 0.6, 12.0),
            Field::Description => (1.0, 0.6, 20.0),
            Field::Tags => (0.7, 0.5, 4.0),
            Field::Actions => (1.0, 0.6, 6.0),
            Field::ActionTexts => (0.5, 0.7, 30.0),
            Field::Parameters => (0.3, 0.6, 6.0),
            Field::ParameterTexts => (0.3, 0.7, 30.0),
        };
        Scale { weight, by_length, usual_length }
    }
}
