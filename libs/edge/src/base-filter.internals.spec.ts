import type { ArgumentsHost } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { answerBaseFilters } from './base-filter.internals.js';

test('a filter that extends BaseExceptionFilter finds its adapter, given or injected', () => {
  const seen: unknown[] = [];
  const adapter = {} as NonNullable<ConstructorParameters<typeof BaseExceptionFilter>[0]>;
  answerBaseFilters(adapter, { catch: (exception) => void seen.push(exception) });
  class Trial extends BaseExceptionFilter {}
  const injected = Object.assign(new Trial(), { httpAdapterHost: { httpAdapter: adapter } });
  for (const [index, filter] of [new Trial(adapter), injected].entries()) filter.catch(index, {} as ArgumentsHost);
  expect(seen).toEqual([0, 1]);
});
