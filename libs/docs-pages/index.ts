import type { Part } from '#definition';

/** The document and the guide in a browser. */
export const docsPages = {
  load: async () => ({ module: (await import('./src/docs-pages.controller.js')).DocsPagesModule }),
  greeting: (address) => `Documentation: ${address}/docs`,
} satisfies Part;
