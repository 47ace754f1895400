import type { Part } from '#service';
import type { PROCESS_SETTINGS } from './process-group.js';

/** Several processes on one port. */
export const processes = {
  settings: async () => (await import('./process-group.js')).PROCESS_SETTINGS,
  settingsAfter: 'HOST',
  supervise: async (config, greet) => {
    if (config.webConcurrency === 1) return false;
    const { ProcessGroup } = await import('./process-group.js');
    new ProcessGroup(config, greet).run();
    return true;
  },
} satisfies Part<typeof PROCESS_SETTINGS>;
