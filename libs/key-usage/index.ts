import type { Part } from '#definition';
import { addDeprecationCommand } from './src/deprecations.command.js';

/** Who called what, and when; with the command `deprecations report`. */
export const keyUsage = {
  commands: [{ inService: ['deprecations'], add: addDeprecationCommand }],
  load: async () => {
    const { KeyUsage } = await import('./src/key-usage.js');
    const { KeyUsageModule } = await import('./src/key-usage.module.js');
    return { module: KeyUsageModule, step: KeyUsage };
  },
} satisfies Part;
