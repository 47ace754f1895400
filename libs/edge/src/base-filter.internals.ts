import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';

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
