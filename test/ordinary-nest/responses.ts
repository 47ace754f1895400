import {
  ConflictException,
  Header,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Redirect,
  Res,
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
import { concat, from, of, throwError } from 'rxjs';
import { Int64Property, TextProperty } from '#input';
import { type Declared, Handlers } from './handlers.js';
import type { HttpCall } from '../support/http-client.js';
import type { Difference } from './differences.js';
import type { Row } from './harness.js';

/* Every way out of a handler, and middleware that replaces the methods of a response. */

class Owner {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 }) name: string;
}

class Tag {
  @TextProperty({ description: 'The colour.', minLength: 1, maxLength: 40 }) colour: string;
}

class Account {
  @Int64Property({ description: 'The identifier.' }) id: bigint;
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 }) name: string;
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

const cards = (): object[] =>
  [PlainCard, PlainTwice, Card].map((type) =>
    Object.assign(new type(), { password: 'secret', colour: 'red', name: 'ann' }),
  );
const CARD = '{"name":"ann","colour":"red"}';

/** An iterable of values, each of which may come later. */
async function* values(...given: unknown[]): AsyncGenerator<unknown> {
  for (const value of given) yield await value;
}

/** The first parameter of a handler that writes the response itself, and of one that only changes it. */
const RESPONSE: Declared = { parameters: [[Res(), Object]] };
const PASSED_RESPONSE: Declared = { parameters: [[Res({ passthrough: true }), Object]] };

const WAY = new Handlers('test-written');
/** A row of a handler that writes the response itself. */
const written = (name: string, write: (response: Response) => unknown, more: Partial<Row> = {}): Row =>
  WAY.get(name, write, more, RESPONSE);

/** On stock Nest `JSON.stringify` refuses a bigint, and the instance is written by its `toJSON`. */
const meantExact = (body: unknown, status: number): Partial<Row> => ({
  status,
  send: { expects500: true },
  meant: { difference: 'members of a response', status: 200, body },
});

const EXACT = `{"id":${LARGEST},"name":"ann"}`;
const TOTAL = `{"total":${LARGEST}}`;
/** In streams Nest calls `JSON.stringify`. */
const AS_TEXT = `{"id":"${LARGEST}","name":"ann"}`;

const DATE = 'Thu, 01 Jan 2026 00:00:00 GMT';
const noneMatch = (tags: string): HttpCall => ({ headers: { 'if-none-match': tags } });
const typeOf = (type: string): MethodDecorator => Header('Content-Type', type);
const conflict = (): Error => new ConflictException('not emitted');

const WAYS: readonly Row[] = [
  written('json', (response) => response.json({ owners: [owner('ann')], of: owner('bob') }), {
    contains: '{"owners":[{"name":"ann"}],"of":{"name":"bob"}}',
  }),
  written('jsonp', (response) => response.jsonp(owner('ann'))),
  WAY.row('jsonp?callback=take', { title: 'by-jsonp with a callback' }),
  written('json-exact', (response) => response.json(account()), meantExact(JSON.parse(EXACT), 200)),
  written('json-of-a-bigint', (response) => response.json({ total: LARGEST }), meantExact(JSON.parse(TOTAL), 500)),
  written('json-undefined', (response) => response.json(undefined)),
  written(
    'json-typed',
    (response) =>
      response.type('application/problem+json').json({ a: [1, undefined, NaN], b: undefined, c: new Date(0) }),
    { contains: '{"a":[1,null,null],"c":"1970' },
  ),
  written('send', (response) => response.status(203).send(owner('ann')), { status: 203, contains: '{"name":"ann"}' }),
  written('send-text', (response) => response.send('text ü')),
  WAY.get('observable', () => of(owner('ann'), owner('bob')), { contains: '{"name":"bob"}' }),
  WAY.get('values', () => values(owner('ann'), [owner('bob')]), { contains: '{"name":"ann"}\n[{"name":"bob"}]\n' }),
  WAY.get('values-exact', () => values(account()), { contains: `${AS_TEXT}\n` }),
  WAY.get('values-of-a-bigint', () => values({ total: LARGEST }), { status: 500, send: { expects500: true } }),
  WAY.get('values-of-a-stream', () => Readable.from([{ a: 1 }, { b: [null, undefined] }, 'text', 7]), {
    contains: '{"a":1}\n{"b":[null,null]}\ntext7\n',
  }),
  WAY.get('texts', () => values('a ü', 'b'), { contains: 'a üb' }),
  WAY.get('no-values', () => values()),
  WAY.get('values-that-fail', () => values(Promise.reject(new ConflictException('before the first'))), { status: 409 }),
  WAY.get('values-typed', () => values({ a: 1 }), { contains: '{"a":1}\n' }, typeOf('application/json-seq')),
  WAY.get(
    'web-response',
    () => new globalThis.Response('{"a":1}', { status: 201, headers: { 'content-type': 'application/json' } }),
    { status: 201 },
  ),
  WAY.sse(
    'events',
    () =>
      from([
        ...[{ data: owner('ann'), type: 'named', id: '7', retry: 5 }, { data: [owner('bob')] }, owner('cid')],
        ...[{ data: 7 }, { data: 'two\nlines' }, 'text'],
      ]),
    {
      contains: eventsOf(
        'event: named\nid: 7\nretry: 5\ndata: {"name":"ann"}',
        'id: 1\ndata: [{"name":"bob"}]',
        'id: 2',
        'id: 3\ndata: 7',
        'id: 4\ndata: two\ndata: lines',
      ),
    },
  ),
  WAY.sse('events-that-fail', () => concat(of('first'), throwError(conflict)), { contains: 'event: error' }),
  WAY.sse('no-events-emitted', () => throwError(conflict), { status: 409, contains: 'not emitted' }),
  WAY.sse('events-later', () => Promise.resolve(of({ data: owner('ann') })), {
    contains: eventsOf('id: 1\ndata: {"name":"ann"}'),
  }),
  WAY.sse('events-exact', () => of({ data: account() }), { contains: eventsOf(`id: 1\ndata: ${AS_TEXT}`) }),
  WAY.sse('events-of-a-bigint', () => of({ data: { total: LARGEST } }, 1n), {
    status: 500,
    send: { expects500: true },
  }),
  WAY.sse('events-of-derived', () => from([...cards(), new Owned()].map((data) => ({ data }))), {
    contains: eventsOf(...[CARD, CARD, CARD, '{"name":"dan"}'].map((data, index) => `id: ${index + 1}\ndata: ${data}`)),
  }),
  WAY.get('values-of-derived', () => values([...cards(), new Owned()]), {
    contains: `[${CARD},${CARD},${CARD},{"name":"dan"}]\n`,
  }),
  ...cards().map((card) => WAY.get(card.constructor.name, () => card)),
  WAY.get('object', () => ({ a: 1, b: [null, undefined], c: undefined, d: new Date(0) })),
  WAY.get('moved', () => undefined, { status: 301 }, Redirect('/v1/test-written/object', 301)),
  WAY.get('tagged', () => ({}), { status: 304, send: noneMatch('"other", W/"own"') }, Header('ETag', '"own"')),
  WAY.row('tagged', { title: 'If-None-Match: "other"', send: noneMatch('"other"') }),
  WAY.get(
    'dated',
    () => ({}),
    { title: 'If-Modified-Since: the same', status: 304, send: { headers: { 'if-modified-since': DATE } } },
    Header('Last-Modified', DATE),
  ),
];

function eventsOf(...events: string[]): string {
  return `\n${events.join('\n\n')}\n\n`;
}

const NOWHERE = '/nowhere/hidden-words';
const MISSING = { status: 404, contains: 'Not Found' };
/** A difference of body and media type. */
const meant = (difference: Difference, type: string, body: unknown): Row['meant'] => ({ difference, type, body });

const TYPE = new Handlers('test-types');
/** A row of a handler that returns something of a media type. */
const typed = (type: string, value: unknown, name = type.replaceAll(/\W/g, '-')): Row =>
  TYPE.get(name, () => value, {}, typeOf(type));
const attached = { type: 'text/csv', disposition: 'attachment; filename="a.csv"' };
const file = (): StreamableFile => new StreamableFile(createReadStream(NOWHERE), { type: 'image/png' });

const TYPES: readonly Row[] = [
  typed('text/csv', 'a,ü'),
  typed('text/csv; charset=iso-8859-1; header=present', 'a,ü', 'latin'),
  typed('application/xml', '<ü/>'),
  typed('image/svg+xml', '<svg/>'),
  typed('application/json', '{"a":"ü"}'),
  typed('application/problem+json', { a: 'ü' }),
  TYPE.get(
    'by-type',
    (response: Response) => (response.status(203).set('ETag', '"own"').type('csv'), 'a,ü'),
    { status: 203 },
    PASSED_RESPONSE,
  ),
  TYPE.get(
    'by-set-header',
    (response: Response) => (response.setHeader('Content-Type', 'text/calendar'), 'ü'),
    {},
    PASSED_RESPONSE,
  ),
  TYPE.get('csv-stream', () => new StreamableFile(Buffer.from('a,ü')), {}, typeOf('text/csv')),
  TYPE.get('csv-file', () => new StreamableFile(Buffer.from('a,ü'), attached)),
  TYPE.get('missing-file', file, {
    status: 400,
    meant: meant('error body', 'application/json', { code: 'bad_request', message: 'Bad Request', status: 400 }),
  }),
  TYPE.get(
    'missing-file-handled',
    () => file().setErrorHandler((_error, response) => ((response.statusCode = 410), response.send('gone'))),
    { status: 410, isNoErrorBody: true },
  ),
  TYPE.get('missing-stream', () => createReadStream(NOWHERE), { status: 500, send: { expects500: true } }),
  TYPE.get('by-send-file', (response: Response) => response.sendFile(NOWHERE), MISSING, RESPONSE),
  TYPE.get('by-download', (response: Response) => response.download(NOWHERE, 'a.csv'), MISSING, RESPONSE),
];

const CHANGED = new Handlers('test-replaced');
const CHANGED_ROWS: readonly Row[] = [
  CHANGED.get('object', () => ({ a: [1], owner: owner('ann') })),
  CHANGED.get('plain', () => ({ a: [1] })),
  CHANGED.get('by-response', (response: Response) => response.status(203).json({ a: 1 }), { status: 203 }, RESPONSE),
  CHANGED.get('text', () => 'text ü', { meant: meant('media types', 'text/plain; charset=utf-8', 'text ü') }),
  CHANGED.get('number', () => 7, { meant: meant('media types', 'application/json', 7) }),
  CHANGED.get('null', () => null),
  CHANGED.get('bytes', () => Buffer.from('bytes'), {
    meant: meant('media types', 'application/octet-stream', 'bytes'),
  }),
  CHANGED.get('file', () => new StreamableFile(Buffer.from('a,b'), { type: 'text/csv' })),
  CHANGED.get('error', () => Promise.reject(new ConflictException('There are two.')), {
    status: 409,
    contains: 'two.',
  }),
  CHANGED.get('none', () => undefined, { status: 204 }, HttpCode(204)),
];

/** The row of a handler whose response has another method in the place of its own. */
const replaced = (method: string, name: string, more: Partial<Row> = {}): Row => ({
  ...(CHANGED_ROWS.find(({ path }) => path.endsWith(`/${name}`)) as Row),
  title: `response.${method} is replaced: ${name}`,
  send: { headers: { 'x-replace': method } },
  ...more,
});

const CONFLICT = { code: 'conflict', message: 'There are two.', status: 409 };
const OBJECT = { a: [1], owner: { name: 'ann' } };

const REPLACED: readonly Row[] = [
  ...CHANGED_ROWS,
  ...['text', 'number', 'null', 'bytes', 'file', 'none'].map((name) => replaced('json', name)),
  replaced('json', 'object', { contains: JSON.stringify({ wrapped: OBJECT }) }),
  replaced('json', 'plain', { contains: 'wrapped' }),
  replaced('json', 'by-response', { contains: 'wrapped' }),
  replaced('json', 'error', { contains: '', meant: { difference: 'error body', body: { wrapped: CONFLICT } } }),
  ...['send', 'end'].flatMap((method) => [
    ...['plain', 'by-response', 'text', 'number', 'null', 'file', 'none', 'error'].map((name) =>
      replaced(method, name),
    ),
    replaced(method, 'object', { contains: JSON.stringify(OBJECT) }),
  ]),
];

export const RESPONSES: readonly Row[] = [...WAYS, ...TYPES, ...REPLACED];

@Module({ controllers: [WAY.controller, TYPE.controller, CHANGED.controller] })
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
      if (headers['x-replace'] === 'end') {
        response.end = (...given: unknown[]) => (see('end', ''), end(...given));
        response.write = (...given: unknown[]) => (see('write', ''), write(...given));
      }
      next();
    };
    consumer.apply(replace).forRoutes('test-replaced');
  }
}
