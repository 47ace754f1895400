import type { Config } from './config.js';
import { StartupError } from './platform/errors/startup-error.js';

/** The text on the console after a start: the address of the service, and the first API key if one was made. */
export function welcome(config: Config, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const database = config.databaseUrl === undefined ? `embedded PostgreSQL in ${config.dataDir}` : 'PostgreSQL';
  const lines = [`The Pet Store Service listens on ${address}/v1 (${database}). Documentation: ${address}/docs`];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'An API key was made for you. It is shown only once. To make others, stop the service and run:',
      'npm run petstore -- keys create --client my-app',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add an animal and list it:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${address}/v1/pets`,
      `  curl -H "Authorization: Bearer $API_KEY" ${address}/v1/pets`,
      '',
    );
  }
  return lines.join('\n');
}

/** A StartupError that says how to mend an error of `listen`. Other errors are returned unchanged. */
export function listenError(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  // node:cluster reports the system call as 'bind'.
  if (!['listen', 'bind', 'getaddrinfo'].includes(error.syscall ?? '')) return error;
  const unknownHost = `HOST is no address of this machine. Set it to one, or leave it out to listen on all.`;
  const known: Record<string, string> = {
    EADDRINUSE: `Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`,
    EACCES: `Port ${port} needs rights that this user does not have. Set PORT to one above 1023.`,
    EADDRNOTAVAIL: unknownHost,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: unknownHost,
  };
  return new StartupError(known[error.code ?? ''] ?? `Cannot listen on ${host}:${port}: ${error.message}`);
}
