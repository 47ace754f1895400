import { readFile } from 'node:fs/promises';
import pg, { type ClientConfig } from 'pg';
import { ConnectionFileError } from '../connections/connection-errors.js';
import { hangUp } from '../connections/hang-up.js';
import { isClosed } from '../statements/pg-internals.js';
import { HOST_TIMEOUT_MS, ServerHosts } from './server-hosts.js';

/** The part of a client's settings that addresses PostgreSQL. */
export interface ServerAddress extends ClientConfig {
  /** The URI; that of the first host if there are several. */
  readonly connectionString: string;
  /** The password's file; undefined if the URI contains the password, or none is needed. */
  readonly passwordFile: string | undefined;
  /** Set if each new connection must find the primary first. */
  readonly hosts: ServerHosts | undefined;
}

type Callback = (error: Error) => void;

/**
 * The address for URIs that differ only in their hosts. If there are several, or they have `target_session_attrs`, each new
 * connection goes to the primary among the hosts.
 *
 * @param passwordFile the password's file, for URIs without a password
 */
export function serverAddress(uris: readonly string[], passwordFile: string | undefined): ServerAddress {
  const [connectionString] = uris as [string, ...string[]];
  const { searchParams, password } = new URL(connectionString);
  const attributes = searchParams.get('target_session_attrs');
  const file = password === '' && !searchParams.has('password') ? passwordFile : undefined;
  const settingsOf = (host: string): ServerAddress => ({
    connectionString: host,
    passwordFile: file,
    hosts: undefined,
  });
  const questions = (): pg.Client[] =>
    uris.map(
      (host) =>
        new ServerClient({
          ...settingsOf(host),
          connectionTimeoutMillis: HOST_TIMEOUT_MS,
          query_timeout: HOST_TIMEOUT_MS,
          application_name: 'petstore host choice',
        }),
    );
  const hosts =
    uris.length > 1 || attributes !== null ? new ServerHosts(questions, attributes === 'read-write') : undefined;
  return { ...settingsOf(connectionString), hosts };
}

/**
 * pg's client for a `ServerAddress`. Each new client reads the password and the certificates from their files, so that both
 * can change without a restart, and finds the primary if there are several hosts.
 */
export class ServerClient extends pg.Client {
  private readonly hosts: ServerHosts | undefined;
  /** The error of an invalid URI or an unreadable certificate file, which `connect` reports. */
  private readonly fault: Error | undefined;

  constructor(config: ClientConfig & Partial<ServerAddress> = {}) {
    let fault: Error | undefined;
    try {
      super(config);
    } catch (error) {
      // In pg-pool, an error of the constructor would end the process; so `connect` fails instead.
      super({ ...config, connectionString: undefined });
      fault =
        (error as NodeJS.ErrnoException).path === undefined
          ? (error as Error)
          : new ConnectionFileError(error as Error);
    }
    this.fault = fault;
    this.hosts = config.hosts;
    const { passwordFile } = config;
    if (passwordFile !== undefined) {
      const password = (): Promise<string> =>
        readPassword(passwordFile).catch((error: Error) => {
          // pg reports the error, but leaves the connection open.
          setImmediate(() => hangUp(this));
          throw new ConnectionFileError(error);
        });
      Object.assign(this, { password });
    }
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<pg.Client> | undefined {
    if (this.fault === undefined && this.hosts === undefined) {
      return callback === undefined ? super.connect() : void super.connect(callback);
    }
    const connected = this.connectToPrimary();
    if (callback === undefined) return connected;
    connected.then(() => (callback as () => void)(), callback);
    return undefined;
  }

  private async connectToPrimary(): Promise<pg.Client> {
    try {
      if (this.fault !== undefined) throw this.fault;
      const host = await this.hosts?.choose();
      if (isClosed(this)) throw new Error('timeout expired');
      Object.assign(this, host);
    } catch (error) {
      // The pool waits for this event, which pg emits only for clients that have begun to connect.
      this.emit('end');
      throw error;
    }
    return super.connect();
  }
}

/** @throws Error of the file system */
export async function readPassword(file: string): Promise<string> {
  // Editors and `echo` end a file with a newline, which is not part of the password.
  return (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
}
