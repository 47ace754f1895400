import { readFile } from 'node:fs/promises';
import pg, { type ClientConfig } from 'pg';
import { hangUp } from '#internals';
import { ConnectionFileError } from './connections/connection-errors.js';

/** The part of a client's settings that addresses PostgreSQL. */
export interface ServerAddress extends ClientConfig {
  readonly connectionString: string;
  /** The password's file; undefined if the URI contains the password, or none is needed. */
  readonly passwordFile: string | undefined;
}

/** @param passwordFile the password's file, for a URI without a password */
export function serverAddress(uri: string, passwordFile: string | undefined): ServerAddress {
  const { searchParams, password } = new URL(uri);
  const hasPassword = password !== '' || searchParams.has('password');
  return { connectionString: uri, passwordFile: hasPassword ? undefined : passwordFile };
}

/**
 * pg's client for a `ServerAddress`. Each new client reads the password and the certificates from their files, so that both
 * can change without a restart.
 */
export class ServerClient extends pg.Client {
  /** The error of an invalid URI or an unreadable certificate file, which `connect` reports. */
  private readonly fault: Error | undefined;

  constructor(config: ClientConfig & Partial<ServerAddress> = {}) {
    // In pg-pool, an error of the constructor would end the process; so `connect` fails instead.
    const fault = faultOf(config);
    super(fault === undefined ? config : { ...config, connectionString: undefined });
    this.fault = fault;
    const { passwordFile } = config;
    if (passwordFile !== undefined) Object.assign(this, { password: () => this.readPassword(passwordFile) });
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const { fault } = this;
    if (fault === undefined) return callback === undefined ? super.connect() : void super.connect(callback);
    // The pool waits for this event, which pg emits only for clients that have begun to connect.
    this.emit('end');
    if (callback === undefined) return Promise.reject(fault);
    setImmediate(callback, fault);
    return undefined;
  }

  private async readPassword(file: string): Promise<string> {
    try {
      // Editors and `echo` end a file with a newline, which is not part of the password.
      return (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
    } catch (error) {
      // pg reports the error, but leaves the connection open.
      setImmediate(() => hangUp(this));
      throw new ConnectionFileError(error as Error);
    }
  }
}

/** The error that pg's constructor throws for these settings. */
function faultOf(config: ClientConfig): Error | undefined {
  try {
    new pg.Client(config);
    return undefined;
  } catch (error) {
    const isOfFile = (error as NodeJS.ErrnoException).path !== undefined;
    return isOfFile ? new ConnectionFileError(error as Error) : (error as Error);
  }
}
