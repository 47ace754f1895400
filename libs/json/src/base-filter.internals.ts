import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import type { Reach } from '#runtime';

type Adapter = Exclude<ConstructorParameters<typeof BaseExceptionFilter>[0], undefined>;

/** By adapter. */
const filters = new WeakMap<object, ExceptionFilter>();

/**
 * Lets `super.catch` of a filter that extends Nest's BaseExceptionFilter do what `filter` does, in applications with this adapter alone.
 * Nest's own code hands the adapter a body, from which no exception can be told.
 */
export function answerBaseFilters(adapter: object, filter: ExceptionFilter): void {
  filters.set(adapter, filter);
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the filter as its `this`
const { catch: byNest } = BaseExceptionFilter.prototype;

BaseExceptionFilter.prototype.catch = function (exception: unknown, host: ArgumentsHost): void {
  const { applicationRef, httpAdapterHost } = this as unknown as Record<'applicationRef', object | undefined> & {
    readonly httpAdapterHost?: { readonly httpAdapter: object };
  };
  const filter = filters.get(applicationRef ?? httpAdapterHost?.httpAdapter ?? this);
  if (filter) filter.catch(exception, host);
  else byNest.call(this, exception, host);
};

export const BASE_FILTER: Reach = {
  dependency: '@nestjs/core',
  touches: 'catch of BaseExceptionFilter.prototype, and applicationRef and httpAdapterHost of its instances',
  why: 'filters that extend it send the Error body',
  check: () => {
    const seen: unknown[] = [];
    const adapter = {} as Adapter;
    answerBaseFilters(adapter, { catch: (exception) => void seen.push(exception) });
    class Trial extends BaseExceptionFilter {}
    const injected = Object.assign(new Trial(), { httpAdapterHost: { httpAdapter: adapter } });
    for (const [index, filter] of [new Trial(adapter), injected].entries()) filter.catch(index, {} as ArgumentsHost);
    return seen.join() === '0,1' ? undefined : 'its BaseExceptionFilter keeps its adapter in another way';
  },
};
