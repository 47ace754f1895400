import {
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  TextProperty,
} from '#platform';

/* Members and parameters with several values, whose rules `platform/input` tests, and `platform/properties` their document. */

export const COLOUR = {
  enum: ['red', 'blue'],
  enumName: 'ToyPaint',
  enumSchema: { description: 'A colour.' },
};
export const list = { description: 'A list.', required: false, isArray: true, maxItems: 2 } as const;

export class ListsBody {
  @TextProperty({ ...list, minItems: 1, uniqueItems: true, minLength: 1, maxLength: 5, example: ['new'] })
  tags?: string[];

  @Int64Property({ ...list, maxItems: 9 }) ids?: bigint[];
  @IntegerProperty({ ...list, minimum: 0, maximum: 9 }) counts?: number[];
  @EnumProperty({ ...list, ...COLOUR }) colours?: string[];
}

export class ListsQuery {
  @TextProperty({ ...list, minLength: 1, maxLength: 5 }) tag?: string[];
  @EnumProperty({ ...list, ...COLOUR }) colour?: string[];
  @Int64Parameter(list) id?: bigint[];
  @IntegerParameter({ ...list, minimum: 0, maximum: 9 }) count?: number[];
}
