import type { ClientBase, Connection, Submittable } from 'pg';
import { serialize } from 'pg-protocol';

/**
 * A `COPY … FROM STDIN` that sends its rows together with the statement. The embedded engine accepts no rows after the
 * statement, and a server saves a round trip. If PostgreSQL refuses the statement, it skips the rows.
 */
class CopyRows implements Submittable {
  readonly done: Promise<void>;
  private resolve!: () => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly statement: string,
    private readonly rows: Buffer,
  ) {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: Connection): void {
    const messages = [serialize.query(this.statement), serialize.copyData(this.rows), serialize.copyDone()];
    connection.stream.write(Buffer.concat(messages));
  }

  handleReadyForQuery(): void {
    this.resolve();
  }

  handleError(error: Error): void {
    this.reject(error);
  }

  // Required by pg.
  handleCopyInResponse(): void {}
  handleCommandComplete(): void {}
}

/**
 * Runs `COPY … FROM STDIN` with these rows, in the format that the statement names.
 *
 * @throws any error of pg
 */
export async function copyRows(client: ClientBase, statement: string, rows: Buffer): Promise<void> {
  const query = new CopyRows(statement, rows);
  client.query(query);
  await query.done;
}
