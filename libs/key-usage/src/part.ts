import type { Part } from '#service';
import { addDeprecationCommand } from './deprecations.command.js';

/** Who called what, and when; with the command `deprecations report`. */
export const keyUsage = {
  commands: [{ inService: ['deprecations'], add: addDeprecationCommand }],
  migrations: [new URL('./migrations/', import.meta.url)],
  load: async () => {
    const [{ KeyUsage }, { KeyUsageModule }] = await Promise.all([
      import('./key-usage.js'),
      import('./key-usage.module.js'),
    ]);
    return { module: KeyUsageModule, step: KeyUsage };
  },
} satisfies Part;
