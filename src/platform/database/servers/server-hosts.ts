import type pg from 'pg';
import { NoPrimaryError } from '../connections/connection-errors.js';

/** Longest time in ms that a host has to answer whether it is the primary. All hosts are asked at the same time. */
export const HOST_TIMEOUT_MS = 1_000;

/** Time in ms for which new connections go to the host that was last found to be the primary. */
const REMEMBERED_MS = 1_000;

/** Error codes of hosts that sent nothing at all. */
const SILENT = /^(ETIMEDOUT|EHOST|ENET)/;

/** A host of a URI that lists several. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

// A role's default_transaction_read_only also makes a primary read-only, so both columns are needed.
const STATE = `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only`;

/**
 * The hosts of a URI, one of which is the primary. New connections go to the host that was the primary at the last check, at
 * most 1 s ago. Each check resolves the names anew, so that a failover by DNS is noticed, too.
 */
export class ServerHosts {
  private chosen: Promise<Host> | undefined;
  private expiresAt = -Infinity;

  /**
   * @param clients makes a client for each host, with HOST_TIMEOUT_MS as its time-outs
   * @param isReadOnlyRefused whether a primary that is read-only by default is refused, as with
   *   `target_session_attrs=read-write`
   */
  constructor(
    private readonly clients: () => pg.Client[],
    private readonly isReadOnlyRefused: boolean,
  ) {}

  /**
   * The host of the primary.
   *
   * @throws NoPrimaryError that names the state of each host when none is the primary
   */
  choose(): Promise<Host> {
    if (this.chosen === undefined || performance.now() >= this.expiresAt) {
      this.expiresAt = Infinity;
      const chosen = (this.chosen = this.ask());
      chosen.then(
        () => (this.expiresAt = performance.now() + REMEMBERED_MS),
        () => this.forget(),
      );
    }
    return this.chosen;
  }

  /** Makes the next connection check the hosts again. */
  forget(): void {
    this.chosen = undefined;
  }

  private async ask(): Promise<Host> {
    const answers = this.clients().map((client) => this.find(client));
    return Promise.any(answers).catch((error: AggregateError) => Promise.reject(noPrimary(error.errors as Error[])));
  }

  /** @throws Error that names the host and what is wrong with it */
  private async find(client: pg.Client): Promise<Host> {
    client.on('error', () => undefined);
    const { host, port } = client;
    try {
      await client.connect();
      const { rows } = await client.query<{ standby: boolean; read_only: boolean }>(STATE);
      const [state] = rows;
      if (state?.standby !== false) throw new Error('is a standby');
      if (state.read_only && this.isReadOnlyRefused) throw new Error('is read-only');
      return { host, port };
    } catch (error) {
      const { message, code } = error as Error & { code?: string };
      const isSilent = /time-?out/i.test(message) || SILENT.test(code ?? '');
      throw Object.assign(new Error(`${host}:${port} ${isSilent ? 'does not answer' : message || code}`), { isSilent });
    } finally {
      // Not awaited: a host that hangs would not answer.
      client.end().catch(() => undefined);
    }
  }
}

function noPrimary(faults: readonly (Error & { isSilent?: boolean })[]): NoPrimaryError {
  const states = faults.map(({ message }) => message.split('\n')[0]).join('; ');
  return new NoPrimaryError(states, !faults.every(({ isSilent }) => isSilent));
}
