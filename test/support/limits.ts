import type { ServiceConfig } from '../../src/settings.js';

/** Environment variables that change limits, which are no settings, of a process that a test starts. */
export function limits(changed: Partial<ServiceConfig>): Record<string, string> {
  return {
    NODE_OPTIONS: `--import=${new URL('apply-limits.js', import.meta.url).href}`,
    TEST_LIMITS: JSON.stringify(changed),
  };
}
