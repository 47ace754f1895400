import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { ExceptionsHandler } from '@nestjs/core/exceptions/exceptions-handler.js';

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

// eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the handler as its `this`
const { setCustomFilters } = ExceptionsHandler.prototype;

/** Nest leaves the promise of a filter that rejects to the process, which would end. */
ExceptionsHandler.prototype.setCustomFilters = function (custom) {
  const { applicationRef } = this as unknown as { readonly applicationRef: object };
  const caught = custom.map((each) => ({
    ...each,
    func: (exception: unknown, host: ArgumentsHost) => {
      const result: unknown = each.func(exception, host);
      const filter = filters.get(applicationRef);
      return filter && result instanceof Promise ? result.catch((failure) => void filter.catch(failure, host)) : result;
    },
  }));
  setCustomFilters.call(this, caught);
};
