import { Body, Controller, Get, HttpCode, Post, Sse, type Type } from '@nestjs/common';
import { Public } from '#operations';
import type { Row } from './harness.js';

/** The parameter of a handler, and its type as the compiler would note it. */
export type Parameter = [decorate: ParameterDecorator, type: unknown];

/** A controller at `/v1/<path>` whose handlers are declared by the rows that request them. */
export class Handlers {
  readonly controller: Type;

  constructor(private readonly path: string) {
    const name = path.replaceAll(/(?:^|\W)(\w)/g, (_, letter: string) => letter.toUpperCase());
    this.controller = { [`${name}Controller`]: class {} }[`${name}Controller`] as Type;
    for (const decorate of [Public(), Controller(path)]) decorate(this.controller);
  }

  /** Declares a handler of GET at `<path>/<name>`, and returns a row that requests it. */
  get(
    name: string,
    answer: (...given: never[]) => unknown,
    more: Partial<Row> = {},
    declared?: Declared | MethodDecorator,
  ): Row {
    this.add(Get(name), name, answer, declared);
    return this.row(name, more);
  }

  /** The same of a handler with `@Sse`. */
  sse(name: string, answer: () => unknown, more: Partial<Row> = {}): Row {
    this.add(Sse(name), name, answer);
    return this.row(name, more);
  }

  /** Another request to a handler. */
  row(name: string, more: Partial<Row>): Row {
    return { title: `${this.path}/${name}`, path: `/v1/${this.path}/${name}`, status: 200, ...more };
  }

  /** Declares handlers of POST with 200 that return what `answer` makes of their body, at `<path>/<name>`. */
  bodies(
    answer: (body: never) => unknown,
    types: Record<string, Parameter | Type>,
    ...decorators: MethodDecorator[]
  ): void {
    for (const [name, type] of Object.entries(types)) {
      const parameters: Parameter[] = [Array.isArray(type) ? type : [Body(), type]];
      this.add(Post(name), name, answer, { parameters, decorators: [HttpCode(200), ...decorators] });
    }
  }

  /** Declares a handler by the decorator of its route. */
  add(route: MethodDecorator, name: string, answer: unknown, declared: Declared | MethodDecorator = {}): void {
    const { parameters = [], decorators = [] } = typeof declared === 'function' ? { decorators: [declared] } : declared;
    const { prototype } = this.controller as { prototype: object };
    const handler = (answer as (...given: unknown[]) => unknown).bind(undefined);
    Object.defineProperty(handler, 'name', { value: name });
    Object.defineProperty(prototype, name, { value: handler, configurable: true, writable: true });
    const types = parameters.map(([, type]) => type);
    Reflect.defineMetadata('design:paramtypes', types, prototype, name);
    for (const [index, [decorate]] of parameters.entries()) decorate(prototype, name, index);
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor;
    for (const decorate of [route, ...decorators]) decorate(prototype, name, descriptor);
  }
}

export interface Declared {
  readonly parameters?: readonly Parameter[];
  /** Those above the handler. */
  readonly decorators?: readonly MethodDecorator[];
}
