import { join } from 'node:path';
import { socketPath } from '../../platform/database/embedded/directory-lock.js';

/*
 * Commands beside a running service with the embedded engine, which belongs to one process. The command sends its words
 * to the service through a Unix domain socket in DATA_DIR. The service runs it and sends back what it prints and its exit
 * code. Each message is a line of JSON.
 */

/** Directory in DATA_DIR that its owner alone may enter, and the socket in it. */
export const COMMANDS_DIRECTORY = 'commands';
const SOCKET = 'socket';

/** The first words of the commands that the service runs. */
export const SERVED = ['deprecations', 'export', 'keys', 'seed'];

export type Message =
  | { readonly print: string }
  | { readonly tell: string }
  | { readonly progress: readonly [done: number, total: number, unit: string] }
  /** Make a file, and answer with an empty line; write these bytes (base64) into it, and complete it. */
  | { readonly create: { readonly path: string; readonly overwrite: boolean } }
  | { readonly write: string }
  | { readonly complete: true }
  | { readonly exit: number };

/** @throws StartupError when the path of DATA_DIR is too long */
export function commandSocket(dataDir: string): string {
  return socketPath(dataDir, join(COMMANDS_DIRECTORY, SOCKET));
}
