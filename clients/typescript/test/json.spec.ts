import { fromJson, toJson, writeBody } from '../src/json.js';

describe('fromJson', () => {
  test.each(['0', '7', '-7', '9007199254740993', '-9007199254740993', '9223372036854775807', '-9223372036854775808'])(
    'an int64 member %s is a bigint with every digit',
    (digits) => {
      expect(fromJson(`[{"id":${digits},"categoryId":${digits}}]`)).toEqual([
        { id: BigInt(digits), categoryId: BigInt(digits) },
      ]);
    },
  );

  test('each item of an array of int64 is a bigint with every digit', () => {
    expect(fromJson('{"id":[1,9007199254740993],"list":[1]}')).toEqual({ id: [1n, 9007199254740993n], list: [1] });
  });

  test('other numbers are of type number, and an object that looks like a number of the parser stays an object', () => {
    const text = '{"status":404,"weight":12.5,"list":[1],"x":{"isLosslessNumber":true,"value":"1"}}';
    expect(fromJson(text)).toEqual(JSON.parse(text));
  });

  test.each(['{"id":1.5}', '{"id":1e400}', '{"id":', '<html>', ''])('refuses %s', (text) => {
    expect(() => fromJson(text)).toThrow(/^text must be JSON: /);
  });
});

describe('the body of a request', () => {
  test('a bigint becomes a JSON number with every digit, and an undefined member is omitted', () => {
    const pet = { name: 'Rex', categoryId: -9223372036854775808n, status: undefined };
    expect(writeBody('pet', pet)).toBe('{"name":"Rex","categoryId":-9223372036854775808}');
  });

  test('an array of bigint keeps every digit of each', () => {
    expect(writeBody('pet', { categoryId: [1n, 9007199254740993n] })).toBe('{"categoryId":[1,9007199254740993]}');
    expect(() => writeBody('pet', { categoryId: [1n, 2] })).toThrow(/^categoryId must be a bigint/);
  });

  test.each([7, 12.5, '9007199254740993', null])('refuses %p for an int64', (categoryId) => {
    expect(() => writeBody('pet', { name: 'Rex', categoryId })).toThrow(/^categoryId must be a bigint/);
  });
});

test.each([NaN, Infinity, -Infinity, () => 'x', Symbol('x')])(
  '%p is refused, which JSON would leave out or turn into null',
  (wrong) => {
    expect(() => toJson({ list: [wrong] })).toThrow(/must be a value that JSON can express/);
    expect(() => writeBody('pet', { name: 'Rex', status: wrong })).toThrow(
      'status must be a value that JSON can express',
    );
  },
);
