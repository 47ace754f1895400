import { join } from 'node:path';
import { socketPath } from '../../platform/database/embedded/directory-lock.js';

/*
 * How a command runs while the service has the embedded engine, which belongs to one process: the command sends its words
 * to the service through a Unix domain socket in DATA_DIR. The service runs the command and sends back its output and its
 * exit code. Each message is a line of JSON.
 */

/** Directory in DATA_DIR that only its owner may enter; it holds the socket. */
export const COMMANDS_DIRECTORY = 'commands';
const SOCKET = 'socket';

/** The first words of the commands that the service runs. */
export const SERVED = ['deprecations', 'export', 'keys', 'seed'];

/** A message of the service to the client. The client answers `create` with an empty line, and the others with nothing. */
export type Message =
  | { readonly print: string }
  | { readonly tell: string }
  | { readonly progress: readonly [done: number, total: number, unit: string] }
  /** Create a file. */
  | { readonly create: { readonly path: string; readonly overwrite: boolean } }
  /** Write these bytes (base64) into the file. */
  | { readonly write: string }
  /** The file is complete. */
  | { readonly complete: true }
  | { readonly exit: number };

/**
 * The path of the socket.
 *
 * @throws StartupError when the path of DATA_DIR is too long
 */
export function commandSocket(dataDir: string): string {
  return socketPath(dataDir, join(COMMANDS_DIRECTORY, SOCKET));
}
