import type { Config } from '../config.js';
import { type Application, BASE_PATH } from '../platform/application.js';
import { StartupError } from '../platform/errors/startup-error.js';

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

/** Open files of a process besides the connections of clients and of the pools: the log, the modules and others. */
const OTHER_OPEN_FILES = 100;

/** A warning for the console if the limit of open files is too low for MAX_CONNECTIONS. */
export function openFilesWarning({
  maxConnections,
  databasePoolSize,
  databaseReplicaUrls,
}: Config): string | undefined {
  const limit = openFilesLimit();
  const needed = maxConnections + databasePoolSize * (1 + databaseReplicaUrls.length) + OTHER_OPEN_FILES;
  if (limit === undefined || limit >= needed) return undefined;
  return (
    `petstore: The limit of open files is ${limit}, and MAX_CONNECTIONS=${maxConnections} needs ${needed}. ` +
    `Raise it (ulimit -n ${needed}), or lower MAX_CONNECTIONS. Clients beyond the limit are not answered.`
  );
}

/** The limit of open files of this process; undefined without a limit. */
function openFilesLimit(): number | undefined {
  const report = process.report as typeof process.report & { excludeNetwork?: boolean };
  // Otherwise the report looks up the names of all peers in DNS.
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const limit = Number(userLimits?.open_files?.soft);
  // Without a limit the report says 'unlimited'.
  return Number.isNaN(limit) ? undefined : limit;
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
