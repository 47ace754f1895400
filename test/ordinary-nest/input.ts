import { Module, Param, Query } from '@nestjs/common';
import { Expose, Transform, Type } from 'class-transformer';
import { IsArray, IsInt, IsOptional, IsString, Length, Min } from 'class-validator';
import { OpaqueParameter, TextProperty } from '#input';
import { type Declared, Handlers } from './handlers.js';
import type { Difference } from './differences.js';
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
}

class WordsQuery {
  @OpaqueParameter({ description: 'A word.' }) word: string;
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

const INPUTS = new Handlers('test-input');
INPUTS.bodies(
  (owner: NewOwner) => ({ name: owner.name, familyName: owner.familyName, isOwner: owner instanceof NewOwner }),
  { owners: NewOwner },
);
const PARAMS: Declared = { parameters: [[Param(), IdParams]] };
INPUTS.get('ids/:id', (params: IdParams) => ({ ...params, isParams: params instanceof IdParams }), {}, PARAMS);
INPUTS.get('tags', (tags: TagsQuery) => tags, {}, { parameters: [[Query(), TagsQuery]] });
INPUTS.get('words', (words: WordsQuery) => words, {}, { parameters: [[Query(), WordsQuery]] });

@Module({ controllers: [INPUTS.controller] })
export class InputModule {}

/** A request that the service refuses. */
const refused = (title: string, path: string, difference: Difference, code: string, message: string): Row =>
  INPUTS.row(path, { title, status: 400, meant: { difference, status: 400, body: { code, message, status: 400 } } });

const sent = (title: string, body: object, contains: string): Row =>
  INPUTS.row('owners', { title, method: 'POST', send: { body }, contains });

const OF_INPUT = 'faults of input';
const OF_QUERY = 'query parameters';
const PARAMETER = 'invalid_parameter';

export const INPUT: readonly Row[] = [
  INPUTS.row('ids/7', { title: '@Param() as a class', contains: '"isParams":true' }),
  refused('@Param() as a class: refused', 'ids/x', OF_INPUT, 'bad_request', 'id must be an integer number'),
  INPUTS.row('tags?tag=a&tag=b', { title: 'a repeated query parameter', contains: '["a","b"]' }),
  refused('@IsArray of one value', 'tags?tag=a', OF_INPUT, PARAMETER, 'tag must be an array'),
  refused(
    'a repeated query parameter of a class with decorators of the platform alone',
    'words?word=a&word=b',
    OF_QUERY,
    PARAMETER,
    "query parameter 'word' must be given only once",
  ),
  {
    ...refused('an unknown query parameter', 'tags?page=2', OF_QUERY, PARAMETER, 'property page should not exist'),
    status: 200,
  },
  sent('@Transform beside @TextProperty', { name: '  ann  ' }, '"name":"ann"'),
  sent('@Expose with another name', { name: 'ann', family_name: 'Lee' }, '"familyName":"Lee"'),
];
