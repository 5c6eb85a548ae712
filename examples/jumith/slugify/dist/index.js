export const tool = {
  name: "text.slugify",
  description: "Turn a title into a slug",
  requiresApproval: false,

  async execute({ title }) {
    const slug = title
      .normalize("NFKD")
      .replace(/\p{Mark}/gu, "")
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
    if (slug === "") throw new Error("the title has no letter and no digit");
    return { slug };
  },
};
