export const tool = {
  name: "@NAME@",
  description: "@SUMMARY@",
  requiresApproval: false,

  async execute({ text }) {
    if (typeof text !== "string") throw new TypeError("text must be a string");
    return { words: text.split(/\s+/).filter(Boolean).length, characters: [...text].length };
  },
};
