import { Body, Module, Param, Patch, Query } from '@nestjs/common';
import { PartialType } from '@nestjs/swagger';
import { Expose, Transform, Type } from 'class-transformer';
import { IsArray, IsInt, IsOptional, IsString, Length, Min } from 'class-validator';
import { OpaqueParameter, TextProperty } from '#input';
import { Handlers } from './handlers.js';
import type { Row } from './harness.js';

class IdParams {
  @Type(() => Number)
  @IsInt()
  @Min(1)
  id: number;
}

class TagsQuery {
  @IsOptional()
  @IsArray()
  @IsString({ each: true })
  tag?: string[];

  @IsOptional()
  @IsString()
  sort?: string;
}

class WordsQuery {
  @OpaqueParameter({ description: 'A word.' })
  word: string;
}

class NewOwner {
  // A decorator of the platform together with those of class-transformer.
  @Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? value.trim() : value))
  @TextProperty({ description: 'Name.', minLength: 1, maxLength: 5 })
  name: string;

  @IsOptional()
  @Expose({ name: 'family_name' })
  @IsString()
  @Length(2, 20)
  familyName?: string;
}

class OwnerChange extends PartialType(NewOwner) {}

class Unruled {
  any?: unknown;
}

const INPUTS = new Handlers('test-input');
const unchanged = (value: unknown): unknown => value;
INPUTS.bodies(
  (owner: NewOwner) => ({ name: owner.name, familyName: owner.familyName, isOwner: owner instanceof NewOwner }),
  { owners: NewOwner },
);
INPUTS.bodies((body: unknown) => ({ body, isClass: body instanceof Unruled }), { any: Unruled });
INPUTS.add(Patch('owners'), 'changeOwner', (change: OwnerChange) => ({ ...change }), {
  parameters: [[Body(), OwnerChange]],
});
INPUTS.get(
  'ids/:id',
  (params: IdParams) => ({ ...params, isParams: params instanceof IdParams }),
  {},
  {
    parameters: [[Param(), IdParams]],
  },
);
INPUTS.get('tags', unchanged, {}, { parameters: [[Query(), TagsQuery]] });
INPUTS.get('words', unchanged, {}, { parameters: [[Query(), WordsQuery]] });

@Module({ controllers: [INPUTS.controller] })
export class InputModule {}

const refused = (code: string, message: string): object => ({ code, message, status: 400 });
const sent = (title: string, path: string, body: object, more: Partial<Row> = {}): Row => ({
  title,
  path: `/v1/test-input/${path}`,
  method: 'POST',
  send: { body },
  status: 200,
  ...more,
});

export const INPUT: readonly Row[] = [
  { title: '@Param() as a class', path: '/v1/test-input/ids/7', status: 200, contains: '"isParams":true' },
  {
    title: '@Param() as a class: refused',
    path: '/v1/test-input/ids/x',
    status: 400,
    meant: {
      difference: 'faults of input',
      body: refused('bad_request', 'id must be an integer number'),
    },
  },
  { title: 'a repeated query parameter', path: '/v1/test-input/tags?tag=a&tag=b', status: 200, contains: '["a","b"]' },
  {
    title: '@IsArray of a parameter that is given once',
    path: '/v1/test-input/tags?tag=a',
    status: 400,
    meant: { difference: 'faults of input', body: refused('invalid_parameter', 'tag must be an array') },
  },
  {
    title: 'a repeated query parameter of a class with decorators of the platform alone',
    path: '/v1/test-input/words?word=a&word=b',
    status: 400,
    meant: {
      difference: 'query parameters',
      body: refused('invalid_parameter', "query parameter 'word' must be given only once"),
    },
  },
  {
    title: 'an unknown query parameter',
    path: '/v1/test-input/tags?page=2',
    status: 200,
    meant: {
      difference: 'query parameters',
      status: 400,
      body: refused('invalid_parameter', 'property page should not exist'),
    },
  },
  sent('@Transform beside @TextProperty', 'owners', { name: '  ann  ' }, { contains: '"name":"ann"' }),
  sent('@Expose with another name', 'owners', { name: 'ann', family_name: 'Lee' }, { contains: '"familyName":"Lee"' }),
  sent('missing members of PartialType and @IsOptional', 'owners', {}, { method: 'PATCH' }),
  sent('a class without rules', 'any', { any: 1, more: [2] }, { contains: '"isClass":true' }),
  sent(
    'members that the class does not declare',
    'owners',
    { name: 'ann', role: 'admin' },
    { method: 'PATCH', meant: { difference: 'undeclared members', body: { name: 'ann' } } },
  ),
];
