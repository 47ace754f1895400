import { SetMetadata } from '@nestjs/common';
import type { Handler } from './handler-parameters.js';
import { JSON_LIMITS, type JsonLimits } from '#json';

const BODY_LIMITS = 'platform:body-limits';

/** The largest limits: a body of so many values takes some tens of ms, in which the process does nothing else. */
const MOST: JsonLimits = { values: 100_000, levels: 100 };

/**
 * Sets how much the JSON body of an operation may hold, such as a list of a thousand objects. `MAX_BODY_BYTES` stays.
 *
 * @example `@Post('bulk') @BodyLimits({ values: 50_000 }) addVisits(@Body() visits: NewVisits)`
 * @param limits `values`: values and member names together, {@link JSON_LIMITS} by default, 100 000 at most; objects, and numbers
 *   with an exponent or more than 15 characters, count twice. `levels`: nesting, at most 100
 * @throws Error at import time for a limit that is no integer from 1 to the largest
 */
export function BodyLimits(limits: Partial<JsonLimits>): MethodDecorator {
  const set = { ...JSON_LIMITS, ...limits };
  for (const name of ['values', 'levels'] as const) {
    if (Number.isInteger(set[name]) && set[name] >= 1 && set[name] <= MOST[name]) continue;
    throw new Error(`@BodyLimits: ${name} must be an integer from 1 to ${MOST[name]}.`);
  }
  return SetMetadata(BODY_LIMITS, set);
}

export function bodyLimitsOf(handler: Handler): JsonLimits {
  return (Reflect.getMetadata(BODY_LIMITS, handler) as JsonLimits | undefined) ?? JSON_LIMITS;
}
