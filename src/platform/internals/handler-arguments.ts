import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import type { ParamProperties } from '@nestjs/core/router/router-execution-context.js';

/** What Nest calls a handler with. */
export type Message = [request: unknown, response: unknown, next: unknown];

/** A parameter of a handler, as Nest describes it. */
export type Parameter = ParamProperties & { metatype?: ArgumentMetadata['metatype'] };

/** Nest's name for the kind of a parameter, such as `body`. */
export type KindOf = (type: Parameter['type']) => ArgumentMetadata['type'];

/** Fills the arguments of a handler; returns a promise if one of them is asynchronous. */
export type Collect = (args: unknown[], ...message: Message) => PromiseLike<unknown> | undefined;

/** How one argument of a handler is made. */
interface Argument {
  readonly index: number;
  readonly extract: (...message: Message) => unknown;
  /** Passes the value through its pipes; undefined if it has none. */
  readonly pass: Pass | undefined;
}

/** Returns a promise if the value is one, if a pipe makes one, or if a pipe throws. */
type Pass = (value: unknown) => unknown;

/**
 * Makes the function that collects the arguments of a handler, with promises only where a value or a pipe brings one.
 *
 * @param pipes the pipes of the handler, which come before those of a parameter
 * @param piped those of `parameters` that Nest passes through pipes
 * @returns undefined if Nest's own code must collect them. With several piped parameters, the order of their pipes and the
 *   first error depend on how long Nest's promises take. The promises here take as long only if each of them has one pipe.
 */
export function collectDirectly(
  parameters: readonly Parameter[],
  pipes: readonly PipeTransform[],
  piped: readonly Parameter[],
  kindOf: KindOf,
): Collect | undefined {
  const pipesOf = (parameter: Parameter): PipeTransform[] => [...pipes, ...parameter.pipes];
  const isDirect = piped.length < 2 || piped.every((parameter) => pipesOf(parameter).length === 1);
  if (!isDirect) return undefined;
  return collector(
    parameters.map((parameter) => ({
      index: parameter.index,
      extract: parameter.extractValue as Argument['extract'],
      pass: piped.includes(parameter) ? passing(parameter, pipesOf(parameter), kindOf(parameter.type)) : undefined,
    })),
  );
}

/** All arguments are collected, whichever fails, and the first promise to be rejected decides the error, as with Nest. */
function collector(made: readonly Argument[]): Collect {
  return (args, ...message) => {
    let pending: Promise<unknown>[] | undefined;
    for (const { index, extract, pass } of made) {
      try {
        const value = extract(...message);
        const passed = pass ? pass(value) : value;
        if (pass && isPromise(passed)) (pending ??= []).push(adopt(passed).then((settled) => (args[index] = settled)));
        else args[index] = passed;
      } catch (error) {
        (pending ??= []).push(Promise.reject(error));
      }
    }
    return pending && (pending.length === 1 ? pending[0] : Promise.all(pending));
  };
}

/** Nest's promises of a parameter adopt those of its pipes, which takes a turn of the microtask queue more. */
async function adopt(value: PromiseLike<unknown>): Promise<unknown> {
  return value;
}

/** Makes the member `pass` of an argument. */
function passing(
  { metatype, data, schema }: Parameter,
  pipes: readonly PipeTransform[],
  kind: ArgumentMetadata['type'],
): Pass {
  // A fresh metadata object per pipe: pipes may keep or modify it.
  const metadata = (): ArgumentMetadata => ({ metatype, type: kind, data, schema }) as ArgumentMetadata;
  /** Passes the value of a promise through the pipes from `next` on. */
  const settle = async (value: unknown, next: number): Promise<unknown> => {
    let settled = await value;
    for (const pipe of pipes.slice(next)) settled = await pipe.transform(settled, metadata());
    return settled;
  };
  return (value) => {
    try {
      for (let index = 0; index < pipes.length; index++) {
        if (isPromise(value)) return settle(value, index);
        value = (pipes[index] as PipeTransform).transform(value, metadata());
      }
    } catch (error) {
      // Not thrown: what fails to be extracted is refused before.
      return Promise.reject(error);
    }
    return isPromise(value) ? settle(value, pipes.length) : value;
  };
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
