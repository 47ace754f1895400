import { StartupError } from '#errors';
import { type Application, BASE_PATH, type Config } from '#settings';

/**
 * The text on the console after a start: the address of the service, and the first API key if one was made. Its lines fit
 * 80 columns, unless DATA_DIR is long.
 */
export function welcome(application: Application, config: Config, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const base = `${address}${BASE_PATH}`;
  const isEmbedded = config.databaseUrl === undefined;
  const lines = [
    `The ${application.info.title} listens on ${base}`,
    `Documentation: ${address}/docs`,
    `Database: ${isEmbedded ? `embedded PostgreSQL in ${config.dataDir}` : 'PostgreSQL'}`,
  ];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'An API key was made for you. It is shown only once:',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add an animal and list it:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" \\`,
      `    -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${base}/pets`,
      `  curl -H "Authorization: Bearer $API_KEY" ${base}/pets`,
      '',
      'Something to look at, and another key, in a second terminal:',
      '',
      '  npm run petstore -- seed --count 25',
      '  npm run petstore -- keys create --client my-app',
      '',
    );
  } else if (isEmbedded) {
    lines.push('Another API key: npm run petstore -- keys create --client my-app');
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
