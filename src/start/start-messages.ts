import { StartupError } from '#errors';
import { type Application, BASE_PATH, type Config } from '#settings';

/**
 * The text on the console after a start: the address of the service, and the first API key if one was made. Its lines fit
 * 80 columns, unless DATA_DIR is long.
 */
export function welcome(application: Application, config: Config, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const base = `${address}${BASE_PATH}`;
  const lines = [
    `The ${application.info.title} listens on ${base}`,
    `Documentation: ${address}/docs`,
    `Database: ${config.databaseUrl === undefined ? `embedded PostgreSQL in ${config.dataDir}` : 'PostgreSQL'}`,
  ];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'An API key was made for you. It is shown only once:',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add an animal:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" \\`,
      `    -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${base}/pets`,
      '',
    );
  }
  return lines.join('\n');
}

/** A StartupError that says how to mend an error of `listen`. Other errors are returned unchanged. */
export function listenError(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  // node:cluster reports the system call as 'bind'.
  if (!['listen', 'bind', 'getaddrinfo'].includes(error.syscall ?? '')) return error;
  const known: Record<string, string> = {
    EADDRINUSE: `Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`,
    EACCES: `Port ${port} needs rights that this user does not have. Set PORT to one above 1023.`,
  };
  return new StartupError(known[error.code ?? ''] ?? `Cannot listen on ${host}:${port}: ${error.message}`);
}
