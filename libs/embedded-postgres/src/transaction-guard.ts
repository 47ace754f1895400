import { AsyncLocalStorage } from 'node:async_hooks';
import type { EntityManager } from 'typeorm';

const INSIDE_TRANSACTION =
  'This code runs inside a transaction, which holds the only connection of the embedded engine. Use the transaction: ' +
  'in(manager) of a SharedRepository, manager.getRepository(Entity) in place of a repository, and run or manager.query in place of ' +
  'Database.';

type Work = (own: EntityManager) => Promise<unknown>;

/** Knows which code runs inside a transaction. On the embedded engine it gets no second connection: it would wait for its own transaction. */
export class TransactionGuard {
  private readonly transactions = new AsyncLocalStorage<{ isOpen: boolean }>();

  get isInside(): boolean {
    return this.transactions.getStore()?.isOpen === true;
  }

  /** @throws Error inside a transaction */
  readonly admit = (): void => {
    if (this.isInside) throw new Error(INSIDE_TRANSACTION);
  };

  /** @param manager that of the data source: each transaction of TypeORM without a connection of its own begins there */
  watch(manager: EntityManager): void {
    const transaction = manager.transaction.bind(manager) as (...parameters: unknown[]) => Promise<never>;
    const watched = (work: Work) => async (own: EntityManager) => {
      const state = { isOpen: true };
      return this.transactions.run(state, () => work(own)).finally(() => (state.isOpen = false));
    };
    manager.transaction = (...parameters: unknown[]) =>
      transaction(...parameters.map((one) => (typeof one === 'function' ? watched(one as Work) : one)));
  }
}
