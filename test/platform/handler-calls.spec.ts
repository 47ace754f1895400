import {
  type ArgumentMetadata,
  BadRequestException,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  type ArgumentsHost,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  Headers,
  HttpCode,
  HttpException,
  type INestApplication,
  Injectable,
  Ip,
  Logger,
  Module,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Post,
  type Provider,
  Query,
  Redirect,
  Req,
  Res,
  Scope,
  Session,
  Sse,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, NestFactory } from '@nestjs/core';
import { jest } from '@jest/globals';
import express, { type NextFunction, type Request, type Response } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { catchError, map, type Observable, of } from 'rxjs';
import { APPLICATION_OPTIONS } from '../../src/app.setup.js';
import { readConfig } from '../../src/config.js';
import { PlatformExpressAdapter } from '../../src/platform/server/express-adapter.js';
import { callHandlersDirectly } from '../../src/platform/internals/handler-calls.js';
import { importNestInternals, type NestInternals } from '../../src/platform/internals/nest-internals.js';
import { PrecedingInterceptor } from '../../src/platform/internals/preceding-interceptor.js';
import { JsonBody } from '../../src/platform/json/json-body.js';
import { type HttpCall, HttpClient } from '../support/http-client.js';

/** The calls for the current request, in order. */
let calls: string[] = [];

function note(call: string): void {
  calls.push(call);
}

// Bound classes get their label in the constructor, so an instance that was never constructed has none.

// Guards

function guard(name: string, verdict: () => unknown, scope = Scope.DEFAULT): Type<CanActivate> {
  @Injectable({ scope })
  class NotingGuard implements CanActivate {
    private readonly label = name;
    constructor() {
      note(`new guard ${name}`);
    }
    canActivate(): boolean {
      note(`guard ${this.label}`);
      return verdict() as boolean;
    }
  }
  return NotingGuard;
}

// Interceptors

function preceding(name: string, act: () => void = () => undefined, scope = Scope.DEFAULT): Type<NestInterceptor> {
  @Injectable({ scope })
  class NotingInterceptor extends PrecedingInterceptor {
    private readonly label = name;
    override precede(context: ExecutionContext): void {
      note(`precede ${this.label} ${context.getHandler().name} ${context.getArgs().length}`);
      act();
    }
  }
  return NotingInterceptor;
}

function ordinary(
  name: string,
  change: (next: Observable<unknown>) => Observable<unknown>,
  scope = Scope.DEFAULT,
): Type<NestInterceptor> {
  @Injectable({ scope })
  class NotingInterceptor implements NestInterceptor {
    /** A member that has the name of the platform's own method by chance, and must not be called. */
    precede(): void {
      note('never');
    }
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      note(`intercept ${name}`);
      return change(next.handle());
    }
  }
  return NotingInterceptor;
}

class OverridingInterceptor extends PrecedingInterceptor {
  override precede(): void {
    note('precede overriding');
  }
  override intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return super.intercept(context, next).pipe(map((value: unknown) => ({ overridden: value })));
  }
}

const wrapping = ordinary('wrapping', (next) => next.pipe(map((value) => ({ wrapped: value }))));
const catching = ordinary('catching', (next) => next.pipe(catchError((error: Error) => of(error.message))));

// Pipes

function pipe(name: string, transform: (value: unknown) => unknown = (value) => value, scope = Scope.DEFAULT) {
  @Injectable({ scope })
  class NotingPipe implements PipeTransform {
    private readonly label = name;
    transform(value: unknown, metadata: ArgumentMetadata): unknown {
      note(`pipe ${this.label}: ${JSON.stringify(value)}`);
      if (name === 'metadata') note(`${JSON.stringify(metadata)} ${metadata.metatype?.name}`);
      // Each pipe gets its own metadata.
      Object.assign(metadata, { data: 'changed' });
      return transform(value);
    }
  }
  return NotingPipe as Type<PipeTransform>;
}

const fails = (message: string) => (): never => {
  throw new BadRequestException(message);
};
const failsLater = (message: string) => async (): Promise<never> => {
  await turn();
  throw new BadRequestException(message);
};
const later = async (value: unknown): Promise<unknown> => {
  await turn();
  return `${String(value)} later`;
};
const atOnce = (value: unknown): Promise<unknown> => Promise.resolve(`${String(value)} at once`);
/** Like a query of a query builder, which runs when `then` is called. */
const thenable = (value: unknown) => ({
  then(resolve: (value: unknown) => void): void {
    note('then');
    resolve(value);
  },
});

/** A parameter whose value is the result of a function. */
const From = createParamDecorator((make: () => unknown, context: ExecutionContext) => {
  note(`extract ${context.getClass().name}.${context.getHandler().name} ${context.getType()}`);
  return make();
});

// Filters

@Catch()
class NotingFilter implements ExceptionFilter {
  constructor(private readonly name: string = 'global') {}

  catch(error: Error, host: ArgumentsHost): void {
    const [request, response] = host.getArgs<[Request & Record<symbol, unknown>, Response]>();
    note(`filter ${this.name}: ${error.message}`);
    if (request[Symbol.for('nestjs:rejected-by-pipes')]) note('rejected by pipes');
    const status = error instanceof HttpException ? error.getStatus() : 500;
    response.status(status).json({ filter: this.name, error: error.message });
  }
}

const filter = (name: string): NotingFilter => new NotingFilter(name);

// Handlers

/** A handler, its request, and the expected answer if nothing is bound globally. */
interface Case {
  /** Decorators of its controller. */
  readonly onController?: ClassDecorator[];
  /** Decorators of the handler. */
  readonly on?: MethodDecorator[];
  /** By default `@Get(':id')`. */
  readonly route?: MethodDecorator;
  readonly parameters?: ParameterDecorator[];
  readonly types?: Type[];
  /** By default it returns its parameters. */
  readonly handle?: (...parameters: any[]) => unknown;
  readonly send?: HttpCall & { method?: string };
  readonly status?: number;
  readonly text?: string;
  readonly headers?: Record<string, string>;
  readonly calls?: string[];
}

class Animal {}
class Unwritable extends JsonBody {
  override get entityTag(): string {
    throw new Error('unwritable');
  }
}
const refusal = (message: string) => `{"message":"${message}","error":"Bad Request","statusCode":400}`;

const GUARDS: Record<string, Case> = {
  'guards that say yes: at once, later, as an observable': {
    onController: [UseGuards(guard('controller', () => true))],
    on: [
      UseGuards(
        guard('promise', () => Promise.resolve(true)),
        guard('observable', () => of(false, true)),
        guard('promise of an observable', () => Promise.resolve(of(true))),
        guard('truthy', () => 'yes'),
      ),
    ],
  },
  'a guard that says no by a promise, between others': {
    onController: [UseGuards(guard('controller', () => true))],
    on: [
      UseGuards(
        guard('refusing', () => Promise.resolve(false)),
        guard('never asked', () => true),
      ),
      UseInterceptors(preceding('never')),
      HttpCode(202),
      Header('X-Handler', 'never'),
    ],
    status: 403,
  },
  'a guard that throws later': { on: [UseGuards(guard('throwing', failsLater('later')))], status: 400 },
  'guards of their own for each request, and for each place': {
    on: [
      UseGuards(
        guard('request', () => true, Scope.REQUEST),
        guard('transient', () => true, Scope.TRANSIENT),
      ),
    ],
  },
};

const INTERCEPTORS: Record<string, Case> = {
  'preceding ones, behind the guards and before the pipes': {
    onController: [UseInterceptors(preceding('controller'))],
    on: [
      UseGuards(guard('first', () => Promise.resolve(true))),
      UseInterceptors(preceding('handler'), preceding('last')),
      UsePipes(pipe('piped')),
    ],
    parameters: [Param('id')],
    calls: [
      'guard first',
      'precede controller handle 3',
      'precede handler handle 3',
      'precede last handle 3',
      'pipe piped: "7"',
      'handler',
    ],
  },
  'a preceding one that throws': {
    on: [UseInterceptors(preceding('throwing', fails('preceded')), preceding('never')), UseFilters(filter('method'))],
    status: 400,
  },
  'one that changes the answer, and has a member that is called precede': {
    on: [UseInterceptors(wrapping)],
    handle: () => 'value',
    text: '{"wrapped":"value"}',
  },
  'a preceding one whose intercept is overridden': {
    on: [UseInterceptors(OverridingInterceptor)],
    handle: () => 'value',
    text: '{"overridden":"value"}',
  },
  'a mix of both': {
    onController: [UseInterceptors(preceding('outer'), wrapping)],
    on: [UseInterceptors(preceding('inner'), catching)],
    handle: fails('caught'),
    text: '{"wrapped":"caught"}',
  },
};

const PARAMETERS: Record<string, Case> = {
  'all that a handler may ask for': {
    route: Post(':id'),
    parameters: [Body(), Query(), Query('q'), Param(), Param('id'), Headers('x-sent'), Ip(), Headers(), Req()],
    handle: (...parameters: unknown[]) => {
      const { headers } = parameters.pop() as Request;
      return [parameters.pop() === headers, ...parameters];
    },
    send: { method: 'POST', body: { name: 'Rex' }, headers: { 'x-sent': 'sent' } },
    status: 201,
    text: '[true,{"name":"Rex"},{"q":"1"},"1",{"id":"7"},"7","sent","127.0.0.1"]',
  },
  'the response': {
    on: [HttpCode(202), Header('X-Handler', 'set')],
    parameters: [Res()],
    handle: (response: Response) => {
      response.end('by hand');
      return 'ignored';
    },
    status: 202,
    text: 'by hand',
    headers: { 'x-handler': 'set' },
  },
  'the response to pass through': {
    parameters: [Res({ passthrough: true })],
    handle: (response: Response) => {
      response.status(203).setHeader('X-Handler', 'set');
      return JsonBody.of({ sent: true });
    },
    status: 203,
    text: '{"sent":true}',
    headers: { 'x-handler': 'set' },
  },
  'the session, as it is and through no pipe, though it is a promise': {
    parameters: [Session()],
    on: [UsePipes(pipe('never'))],
    handle: async (session: unknown) => [session instanceof Promise, await session],
    text: '[true,{"user":"known"}]',
  },
};

const PIPES: Record<string, Case> = {
  'pipes of controller, handler and parameter': {
    onController: [UsePipes(pipe('controller'))],
    on: [UsePipes(pipe('handler', later))],
    parameters: [Param('id', pipe('parameter', atOnce), pipe('last'))],
    text: '["7 later at once"]',
  },
  'metadata of each kind': {
    on: [UsePipes(pipe('metadata'), pipe('metadata'))],
    route: Post(':id'),
    parameters: [Body()],
    types: [Animal],
    send: { method: 'POST', body: { name: 'Rex' } },
    status: 201,
  },
  'pipes that make thenables': {
    parameters: [Param('id', pipe('thenable', thenable), pipe('last', thenable))],
    text: '["7"]',
  },
  'a pipe that throws': {
    on: [UsePipes(pipe('first'), pipe('throwing', fails('at once')), pipe('never')), UseFilters(filter('method'))],
    parameters: [Param('id')],
    status: 400,
  },
  'a pipe that throws later': {
    on: [UseFilters(filter('method'))],
    parameters: [Req(), Param('id', pipe('throwing', failsLater('later')), pipe('never'))],
    status: 400,
  },
  'a decorator that throws': {
    on: [UseFilters(filter('method'))],
    parameters: [From(fails('extracted'))],
    status: 400,
  },
  'a decorator that makes a thenable, alone': {
    parameters: [From(() => thenable('made'), pipe('piped'))],
    text: '["made"]',
  },
};

const ANSWERS: Record<string, Case> = {
  'a value': { handle: () => ({ a: [1, 2n] }), text: '{"a":[1,2]}' },
  'a thenable, asked once': { handle: () => thenable('value'), text: 'value' },
  'a JsonBody': {
    handle: () => JsonBody.of({ a: 1 }),
    text: '{"a":1}',
    headers: { 'content-type': 'application/json', vary: 'Authorization' },
  },
  'a JsonBody with a status and header fields': {
    on: [HttpCode(202), Header('X-Handler', 'set'), Header('X-Made', () => 'made')],
    handle: () => JsonBody.of({ a: 1 }),
    status: 202,
    text: '{"a":1}',
    headers: { 'x-handler': 'set', 'x-made': 'made', 'cache-control': 'no-store' },
  },
  'a JsonBody that redirects': {
    on: [Redirect('/elsewhere', 301)],
    handle: () => JsonBody.of({ a: 1 }),
    status: 301,
    headers: { location: '/elsewhere' },
  },
  'a JsonBody that cannot be sent': {
    on: [UseFilters(filter('method'))],
    handle: () => new Unwritable('{}'),
    status: 500,
    text: '{"filter":"method","error":"unwritable"}',
  },
  'events, behind guard, preceding interceptor and pipe': {
    route: Sse(':id'),
    on: [UseGuards(guard('one', () => true)), UseInterceptors(preceding('one'))],
    parameters: [Param('id', pipe('one'))],
    handle: (id: string) => of({ data: id }, { data: 'last' }),
  },
};

const ERRORS: Record<string, Case> = {
  'an exception later': { handle: failsLater('later'), status: 400, text: refusal('later') },
  'an error that is none of HTTP': {
    handle: () => {
      throw new Error('secret');
    },
    status: 500,
    text: '{"statusCode":500,"message":"Internal server error"}',
  },
  'a filter of the handler, before that of the controller': {
    onController: [UseFilters(filter('controller'))],
    on: [UseFilters(filter('method'))],
    handle: failsLater('thrown'),
    status: 400,
  },
};

const SCOPES: Record<string, Case> = {
  'one controller, and all that is bound to it made for it': {
    on: [
      UseGuards(guard('transient', () => true, Scope.TRANSIENT)),
      UseInterceptors(preceding('transient', undefined, Scope.TRANSIENT)),
      UsePipes(pipe('transient', undefined, Scope.TRANSIENT)),
    ],
    parameters: [Param('id', pipe('parameter', undefined, Scope.TRANSIENT))],
  },
};

const CASES: [name: string, tested: Case][] = Object.entries({
  guards: GUARDS,
  interceptors: INTERCEPTORS,
  parameters: PARAMETERS,
  pipes: PIPES,
  answers: ANSWERS,
  errors: ERRORS,
  scopes: SCOPES,
}).flatMap(([group, cases]) =>
  Object.entries(cases).map(([name, tested]): [string, Case] => [`${group}: ${name}`, tested]),
);

function controllerOf({ types, ...tested }: Case, index: number): Type {
  class CaseController {
    constructor() {
      note('new controller');
    }
    handle(...parameters: never[]): unknown {
      note(this instanceof CaseController ? 'handler' : 'handler of nobody');
      return tested.handle ? tested.handle(...parameters) : parameters;
    }
  }
  const prototype = CaseController.prototype;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'handle') as PropertyDescriptor;
  Controller(String(index))(CaseController);
  tested.onController?.forEach((decorate) => decorate(CaseController));
  for (const decorate of [tested.route ?? Get(':id'), ...(tested.on ?? [])]) decorate(prototype, 'handle', descriptor);
  tested.parameters?.forEach((decorate, position) => decorate(prototype, 'handle', position));
  Reflect.defineMetadata('design:paramtypes', types ?? [], prototype, 'handle');
  return CaseController;
}

// Applications

const CONTROLLERS = CASES.map(([, tested], index) => controllerOf(tested, index));

/** Global providers, by title. They record their calls, so their order is checked; they must change no answer. */
const GLOBALS: Record<string, Provider[]> = {
  'nothing bound globally': [],
  'guard, preceding interceptor, pipe and filter bound globally': [
    { provide: APP_GUARD, useClass: guard('global', () => true) },
    { provide: APP_INTERCEPTOR, useClass: preceding('global') },
    { provide: APP_PIPE, useClass: pipe('global') },
    { provide: APP_FILTER, useValue: filter('global') },
  ],
};

interface Application {
  readonly client: HttpClient;
  close(): Promise<void>;
}

async function start(providers: Provider[], setUp?: (app: INestApplication) => void): Promise<Application> {
  @Module({ controllers: CONTROLLERS, providers })
  class CasesModule {}
  const adapter = new PlatformExpressAdapter({ ...readConfig({}), shutdownLingerMs: 0 });
  const app = await NestFactory.create(CasesModule, adapter, { ...APPLICATION_OPTIONS, logger: false });
  app.use(express.json());
  app.use((request: object, _response: Response, next: NextFunction) => {
    Object.assign(request, { session: Promise.resolve({ user: 'known' }) });
    next();
  });
  setUp?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return { client: new HttpClient(`http://127.0.0.1:${port}`), close: () => app.close() };
}

async function ask({ client }: Application, path: string, { method = 'GET', ...call }: Case['send'] = {}) {
  calls = [];
  const { status, headers, text } = await client.send(method, path, call);
  await turn();
  const { date: _date, 'x-request-id': _id, ...compared } = headers;
  return { status, headers: compared, text, calls };
}

describe.each(Object.entries(GLOBALS))('%s', (_name, providers) => {
  let byNest: Application;
  let directly: Application;
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  beforeAll(async () => {
    byNest = await start(providers);
    directly = await start(providers, callHandlersDirectly);
    process.on('unhandledRejection', onUnhandled);
  });
  afterAll(async () => {
    process.off('unhandledRejection', onUnhandled);
    await byNest.close();
    await directly.close();
  });

  test.each(CASES.map(([name, tested], index) => [name, tested, index] as const))('%s', async (_, tested, index) => {
    const path = `/${index}/7?q=1`;
    const expected = await ask(byNest, path, tested.send);
    // Twice, because the first request must leave no state.
    expect(await ask(directly, path, tested.send)).toEqual(expected);
    expect(await ask(directly, path, tested.send)).toEqual(expected);
    expect(unhandled).toEqual([]);
    expect(expected).toMatchObject({ status: tested.status ?? 200, headers: tested.headers ?? {} });
    if (providers.length === 0) {
      if (tested.text !== undefined) expect(expected.text).toBe(tested.text);
      if (tested.calls) expect(expected.calls).toEqual(tested.calls);
    }
  });
});

test('preceding interceptors are called without intercept, unless a handler has another interceptor', async () => {
  const intercept = jest.spyOn(PrecedingInterceptor.prototype, 'intercept');
  const app = await start([{ provide: APP_INTERCEPTOR, useClass: preceding('global') }], callHandlersDirectly);
  const timesOf = async (name: string): Promise<number> => {
    intercept.mockClear();
    const index = CASES.findIndex(([other]) => other === name);
    await ask(app, `/${index}/7`);
    expect(calls).toContain('precede global handle 3');
    return intercept.mock.calls.length;
  };
  try {
    expect(await timesOf('answers: a value')).toBe(0);
    expect(await timesOf('interceptors: a mix of both')).toBe(3);
  } finally {
    intercept.mockRestore();
    await app.close();
  }
});

describe('with other internals of Nest', () => {
  let warn: jest.SpiedFunction<Logger['warn']>;
  beforeEach(() => {
    warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  });
  afterEach(() => warn.mockRestore());

  /** Starts the application, expects that Nest calls the handlers as before, and returns what was logged. */
  async function startWith(nest: NestInternals | undefined): Promise<string> {
    const intercept = jest.spyOn(PrecedingInterceptor.prototype, 'intercept');
    const app = await start([{ provide: APP_INTERCEPTOR, useClass: preceding('global') }], (application) => {
      callHandlersDirectly(application, nest);
    });
    try {
      const index = CASES.findIndex(([name]) => name === 'answers: a value');
      const answer = await ask(app, `/${index}/7`);
      expect([answer.status, answer.text]).toEqual([200, '{"a":[1,2]}']);
      expect(intercept).toHaveBeenCalledTimes(1);
      return warn.mock.calls.flat().join();
    } finally {
      intercept.mockRestore();
      await app.close();
    }
  }

  test('a method of Nest that a tool has wrapped is kept', async () => {
    const nest = await importNestInternals();
    const create = jest.spyOn(nest.RouterExecutionContext.prototype, 'create');
    try {
      expect(await startWith(nest)).toContain('the code of @nestjs/core is another one');
      expect(create).toHaveBeenCalled();
    } finally {
      create.mockRestore();
    }
  });

  test('an application that calls handlers elsewhere is noticed', () => {
    callHandlersDirectly({ routesResolver: {} } as unknown as INestApplication);
    expect(warn.mock.calls.flat().join()).toContain('Nest calls handlers from another place');
  });
});
