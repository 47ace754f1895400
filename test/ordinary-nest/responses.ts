import {
  ConflictException,
  Controller,
  Get,
  Header,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
  Res,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import {
  IntersectionType as PlainIntersection,
  OmitType as PlainOmit,
  PartialType as PlainPartial,
  PickType as PlainPick,
} from '@nestjs/mapped-types';
import { IntersectionType, OmitType, PartialType, PickType } from '@nestjs/swagger';
import type { NextFunction, Request, Response } from 'express';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { from, of } from 'rxjs';
import { Int64Property, TextProperty } from '#input';
import { Public } from '#operations';
import type { Row } from './harness.js';

/* Every way out of a handler, and middleware that replaces the methods of a response. */

class Owner {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;
}

class Tag {
  @TextProperty({ description: 'The colour.', minLength: 1, maxLength: 40 })
  colour: string;
}

class Account {
  @Int64Property({ description: 'The identifier.' })
  id: bigint;

  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;
}

const LARGEST = 2n ** 63n - 1n;

function owner(name: string): Owner {
  return Object.assign(new Owner(), { password: 'secret', name });
}

function account(): Account {
  return Object.assign(new Account(), { password: 'secret', name: 'ann', id: LARGEST });
}

class PlainCard extends PlainIntersection(PlainPartial(PlainOmit(Owner, [])), PlainPick(Tag, ['colour'])) {}
class PlainTwice extends PlainPartial(PlainPick(PlainCard, ['name', 'colour'])) {}
class Card extends IntersectionType(PartialType(OmitType(Owner, [])), PickType(Tag, ['colour'])) {}

class Owned extends Owner {
  override name = 'dan';
  password = 'secret';
}

@Public()
@Controller('test-ways')
class TestWaysController {
  @Get('by-json')
  byJson(@Res() response: Response): void {
    response.json({ owners: [owner('ann')], of: owner('bob') });
  }

  @Get('by-send')
  bySend(@Res() response: Response): void {
    response.status(203).send(owner('ann'));
  }

  @Get('by-jsonp')
  byJsonp(@Res() response: Response): void {
    response.jsonp(owner('ann'));
  }

  @Get('by-json-exact')
  byJsonExact(@Res() response: Response): void {
    response.json(account());
  }

  @Get('by-json-of-a-bigint')
  byJsonOfBigint(@Res() response: Response): void {
    response.json({ total: LARGEST });
  }

  @Get('by-json-undefined')
  byJsonUndefined(@Res() response: Response): void {
    response.json(undefined);
  }

  @Get('by-json-typed')
  byJsonTyped(@Res() response: Response): void {
    response.type('application/problem+json').json({ a: [1, undefined, NaN], b: undefined, c: new Date(0) });
  }

  @Get('by-send-text')
  bySendText(@Res() response: Response): void {
    response.send('text ü');
  }

  @Get('observable')
  observable(): unknown {
    return of(owner('ann'), owner('bob'));
  }

  @Get('values')
  async *values(): AsyncGenerator<unknown> {
    yield owner('ann');
    yield await Promise.resolve([owner('bob')]);
  }

  @Get('values-exact')
  async *valuesExact(): AsyncGenerator<unknown> {
    yield await Promise.resolve(account());
  }

  @Get('values-of-a-bigint')
  async *valuesOfBigint(): AsyncGenerator<unknown> {
    yield await Promise.resolve({ total: LARGEST });
  }

  @Get('values-of-a-stream')
  valuesOfStream(): Readable {
    return Readable.from([{ a: 1 }, { b: [null, undefined] }, 'text', 7]);
  }

  @Get('texts')
  async *texts(): AsyncGenerator<string> {
    yield await Promise.resolve('a ü');
    yield 'b';
  }

  @Get('no-values')
  async *noValues(): AsyncGenerator<unknown> {}

  @Get('values-that-fail')
  async *valuesThatFail(): AsyncGenerator<unknown> {
    await Promise.reject(new ConflictException('before the first'));
    yield 1;
  }

  @Get('values-typed')
  @Header('Content-Type', 'application/json-seq')
  async *valuesTyped(): AsyncGenerator<unknown> {
    yield await Promise.resolve({ a: 1 });
  }

  @Get('web-response')
  webResponse(): unknown {
    return new globalThis.Response('{"a":1}', { status: 201, headers: { 'content-type': 'application/json' } });
  }

  @Sse('events')
  events(): unknown {
    return from([{ data: owner('ann'), type: 'named', id: '7' }, { data: [owner('bob')] }, owner('cid'), { data: 7 }]);
  }

  @Sse('events-of-derived')
  eventsOfDerived(): unknown {
    const [plain, twice, card] = [this.plainCard(), this.plainTwice(), this.card()];
    return from([{ data: plain }, { data: [twice] }, { data: { card } }, { data: new Owned() }]);
  }

  @Get('values-of-derived')
  async *valuesOfDerived(): AsyncGenerator<unknown> {
    yield await Promise.resolve([this.plainCard(), this.plainTwice(), this.card(), new Owned()]);
  }

  @Sse('events-later')
  async eventsLater(): Promise<unknown> {
    return Promise.resolve(of({ data: owner('ann') }));
  }

  @Sse('events-exact')
  eventsExact(): unknown {
    return of({ data: account() });
  }

  @Sse('events-of-a-bigint')
  eventsOfBigint(): unknown {
    return of({ data: { total: LARGEST } }, 1n);
  }

  @Sse('events-that-contain-themselves')
  eventsThatContainThemselves(): unknown {
    const data: Record<string, unknown> = {};
    data['data'] = data;
    return of({ data });
  }

  @Get('plain-card')
  plainCard(): PlainCard {
    return Object.assign(new PlainCard(), { password: 'secret', colour: 'red', name: 'ann' });
  }

  @Get('plain-twice')
  plainTwice(): PlainTwice {
    return Object.assign(new PlainTwice(), { password: 'secret', colour: 'red', name: 'ann' });
  }

  @Get('card')
  card(): Card {
    return Object.assign(new Card(), { password: 'secret', colour: 'red', name: 'ann' });
  }
}

@Public()
@Controller('test-types')
class TestTypesController {
  @Get('csv')
  @Header('Content-Type', 'text/csv')
  csv(): string {
    return 'a,ü';
  }

  @Get('latin')
  @Header('Content-Type', 'text/csv; charset=iso-8859-1; header=present')
  latin(): string {
    return 'a,ü';
  }

  @Get('xml')
  @Header('Content-Type', 'application/xml')
  xml(): string {
    return '<ü/>';
  }

  @Get('svg')
  @Header('Content-Type', 'image/svg+xml')
  svg(): string {
    return '<svg/>';
  }

  @Get('json')
  @Header('Content-Type', 'application/json')
  json(): string {
    return '{"a":"ü"}';
  }

  @Get('problem')
  @Header('Content-Type', 'application/problem+json')
  problem(): object {
    return { a: 'ü' };
  }

  @Get('by-type')
  byType(@Res({ passthrough: true }) response: Response): string {
    response.type('csv');
    return 'a,ü';
  }

  @Get('by-set-header')
  bySetHeader(@Res({ passthrough: true }) response: Response): string {
    response.setHeader('Content-Type', 'text/calendar');
    return 'ü';
  }

  @Get('csv-stream')
  @Header('Content-Type', 'text/csv')
  csvStream(): StreamableFile {
    return new StreamableFile(Buffer.from('a,ü'));
  }

  @Get('csv-file')
  csvFile(): StreamableFile {
    return new StreamableFile(Buffer.from('a,ü'), { type: 'text/csv' });
  }

  @Get('missing-file')
  missingFile(): StreamableFile {
    return new StreamableFile(createReadStream('/nowhere/hidden-words'), { type: 'image/png' });
  }

  @Get('missing-file-handled')
  missingFileHandled(): StreamableFile {
    const file = new StreamableFile(createReadStream('/nowhere/hidden-words'), { type: 'image/png' });
    return file.setErrorHandler((_error, response) => {
      response.statusCode = 410;
      response.send('gone');
    });
  }

  @Get('missing-stream')
  missingStream(): Readable {
    return createReadStream('/nowhere/hidden-words');
  }

  @Get('missing-by-send-file')
  missingBySendFile(@Res() response: Response): void {
    response.sendFile('/nowhere/hidden-words');
  }

  @Get('missing-by-download')
  missingByDownload(@Res() response: Response): void {
    response.download('/nowhere/hidden-words', 'a.csv');
  }
}

@Public()
@Controller('test-replaced')
class TestReplacedController {
  @Get('object')
  object(): object {
    return { a: [1], owner: owner('ann') };
  }

  @Get('plain')
  plain(): object {
    return { a: [1] };
  }

  @Get('by-response')
  byResponse(@Res() response: Response): void {
    response.status(203).json({ a: 1 });
  }

  @Get('text')
  text(): string {
    return 'text ü';
  }

  @Get('number')
  number(): number {
    return 7;
  }

  @Get('null')
  null(): null {
    return null;
  }

  @Get('bytes')
  bytes(): Buffer {
    return Buffer.from('bytes');
  }

  @Get('file')
  file(): StreamableFile {
    return new StreamableFile(Buffer.from('a,b'), { type: 'text/csv' });
  }

  @Get('error')
  error(): never {
    throw new ConflictException('There are two.');
  }

  @Post('none')
  @HttpCode(204)
  none(): void {}
}

@Module({ controllers: [TestWaysController, TestTypesController, TestReplacedController] })
export class ResponsesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const replace = ({ headers }: Request, response: Response, next: NextFunction): void => {
      const { json, send } = response;
      const end = response.end.bind(response) as (...given: unknown[]) => Response;
      const write = response.write.bind(response) as (...given: unknown[]) => boolean;
      const see = (name: string, body: unknown): void => {
        if (!response.headersSent) response.append('X-Seen', `${name} ${typeof body}`);
      };
      if (headers['x-replace'] === 'json') response.json = (body) => json.call(response, { wrapped: body as unknown });
      if (headers['x-replace'] === 'send') {
        response.send = (body) => {
          see('send', body);
          return send.call(response, body);
        };
      }
      if (headers['x-replace'] === 'both') {
        response.json = (body) => (see('json', body), json.call(response, body));
        response.send = (body) => (see('send', body), send.call(response, body));
      }
      if (headers['x-replace'] === 'end') {
        response.end = (...given: unknown[]) => (see('end', ''), end(...given));
        response.write = (...given: unknown[]) => (see('write', ''), write(...given));
      }
      next();
    };
    consumer.apply(replace).forRoutes('test-replaced');
  }
}

const ofWays = (name: string, more: Partial<Row> = {}): Row => ({
  title: `${name}`,
  path: `/v1/test-ways/${name}`,
  status: 200,
  ...more,
});

/** The response has the declared members alone. */
const declared = (name: string, body: unknown, more: Partial<Row> = {}): Row =>
  ofWays(name, { meant: { difference: 'members of a response', body }, ...more });

/** On stock Nest `JSON.stringify` refuses a bigint, and the instance is written by its `toJSON`. */
const exact = (name: string, body: unknown, status: number): Row =>
  ofWays(name, {
    status,
    send: { expects500: true },
    meant: { difference: 'members of a response', status: 200, body },
  });

const EXACT = `{"id":${LARGEST},"name":"ann"}`;
const TOTAL = `{"total":${LARGEST}}`;
/** In streams Nest calls `JSON.stringify`. */
const AS_TEXT = `{"id":"${LARGEST}","name":"ann"}`;

const CARD = '{"name":"ann","colour":"red"}';

const WAYS: readonly Row[] = [
  ofWays('by-json', { contains: '{"owners":[{"name":"ann"}],"of":{"name":"bob"}}' }),
  ofWays('by-jsonp'),
  ofWays('by-jsonp', { title: 'by-jsonp with a callback', path: '/v1/test-ways/by-jsonp?callback=take' }),
  exact('by-json-exact', JSON.parse(EXACT), 200),
  exact('by-json-of-a-bigint', JSON.parse(TOTAL), 500),
  ofWays('by-json-undefined'),
  ofWays('by-json-typed', { contains: '{"a":[1,null,null],"c":"1970' }),
  ofWays('by-send', { status: 203, contains: '{"name":"ann"}' }),
  ofWays('by-send-text'),
  ofWays('observable', { contains: '{"name":"bob"}' }),
  ofWays('values', { contains: '{"name":"ann"}\n[{"name":"bob"}]\n' }),
  ofWays('values-exact', { contains: `${AS_TEXT}\n` }),
  ofWays('values-of-a-bigint', { status: 500, send: { expects500: true } }),
  ofWays('values-of-a-stream', { contains: '{"a":1}\n{"b":[null,null]}\ntext7\n' }),
  ofWays('texts', { contains: 'a üb' }),
  ofWays('no-values'),
  ofWays('values-that-fail', { status: 409 }),
  ofWays('values-typed', { contains: '{"a":1}\n' }),
  ofWays('web-response', { status: 201 }),
  ofWays('events', {
    contains: eventsOf(
      'event: named\nid: 7\ndata: {"name":"ann"}',
      'id: 1\ndata: [{"name":"bob"}]',
      'id: 2',
      'id: 3\ndata: 7',
    ),
  }),
  ofWays('events-of-derived', {
    contains: eventsOf(
      `id: 1\ndata: ${CARD}`,
      `id: 2\ndata: [${CARD}]`,
      `id: 3\ndata: {"card":${CARD}}`,
      'id: 4\ndata: {"name":"dan"}',
    ),
  }),
  ofWays('values-of-derived', { contains: `[${CARD},${CARD},${CARD},{"name":"dan"}]\n` }),
  ofWays('events-later', { contains: eventsOf('id: 1\ndata: {"name":"ann"}') }),
  ofWays('events-exact', { contains: eventsOf(`id: 1\ndata: ${AS_TEXT}`) }),
  ofWays('events-of-a-bigint', { status: 500, send: { expects500: true } }),
  ...['plain-card', 'plain-twice', 'card'].map((name) => declared(name, { name: 'ann', colour: 'red' })),
];

function eventsOf(...events: string[]): string {
  return `\n${events.join('\n\n')}\n\n`;
}

const ofTypes = (name: string, more: Partial<Row> = {}): Row => ({
  title: `media type: ${name}`,
  path: `/v1/test-types/${name}`,
  status: 200,
  send: { expects500: true },
  ...more,
});

const TYPES: readonly Row[] = [
  ...['csv', 'latin', 'xml', 'svg', 'json', 'problem', 'by-type', 'by-set-header', 'csv-stream', 'csv-file'].map(
    (name) => ofTypes(name),
  ),
  ofTypes('missing-file', {
    status: 400,
    meant: {
      difference: 'error body',
      type: 'application/json',
      body: { code: 'bad_request', message: 'Bad Request', status: 400 },
    },
  }),
  ofTypes('missing-file-handled', { status: 410, isNoErrorBody: true }),
  ofTypes('missing-stream', { status: 500 }),
  ofTypes('missing-by-send-file', { status: 404, contains: 'Not Found' }),
  ofTypes('missing-by-download', { status: 404, contains: 'Not Found' }),
];

const replaced = (method: string, name: string, more: Partial<Row> = {}): Row => ({
  title: `response.${method} is replaced: ${name}`,
  path: `/v1/test-replaced/${name}`,
  status: 200,
  send: { headers: { 'x-replace': method } },
  ...more,
});

const CONFLICT = { code: 'conflict', message: 'There are two.', status: 409 };
const OBJECT = { a: [1], owner: { name: 'ann' } };

const REPLACED: readonly Row[] = [
  replaced('json', 'object', { contains: JSON.stringify({ wrapped: OBJECT }) }),
  replaced('json', 'plain', { contains: 'wrapped' }),
  replaced('json', 'by-response', { status: 203, contains: 'wrapped' }),
  replaced('json', 'text', { meant: { difference: 'media types', type: 'text/plain; charset=utf-8', body: 'text ü' } }),
  replaced('json', 'number', { meant: { difference: 'media types', type: 'application/json', body: 7 } }),
  replaced('json', 'null'),
  replaced('json', 'bytes', { meant: { difference: 'media types', type: 'application/octet-stream', body: 'bytes' } }),
  replaced('json', 'file'),
  replaced('json', 'none', { method: 'POST', status: 204 }),
  replaced('json', 'error', { status: 409, meant: { difference: 'error body', body: { wrapped: CONFLICT } } }),
  ...['send', 'both', 'end'].flatMap((method) => [
    replaced(method, 'object', { contains: JSON.stringify(OBJECT) }),
    replaced(method, 'plain'),
    replaced(method, 'by-response', { status: 203 }),
    replaced(method, 'text', {
      meant: { difference: 'media types', type: 'text/plain; charset=utf-8', body: 'text ü' },
    }),
    replaced(method, 'number', { meant: { difference: 'media types', type: 'application/json', body: 7 } }),
    replaced(method, 'null'),
    replaced(method, 'file'),
    replaced(method, 'none', { method: 'POST', status: 204 }),
    replaced(method, 'error', { status: 409, contains: 'There are two.' }),
  ]),
];

export const RESPONSES: readonly Row[] = [...WAYS, ...TYPES, ...REPLACED];
