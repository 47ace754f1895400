import { ApiProperty, PartialType, PickType } from '@nestjs/swagger';
import { ValidateBy, ValidateNested } from 'class-validator';
import { INT64_MAX, writeJson } from '#json';
import { checkDeclaredMembers, DECLARED } from './declared-members.js';

const declared = (): PropertyDecorator => ValidateBy({ name: DECLARED, validator: { validate: () => true } });

test('reads each member of nested declared objects once, also beside members that are missing', () => {
  let reads = 0;
  class Node {
    readonly note = undefined;
    constructor(private readonly inner: Node | undefined) {}
    get child(): Node | undefined {
      reads++;
      return this.inner;
    }
  }
  for (const name of ['child', 'note']) {
    ApiProperty({ type: Object })(Node.prototype, name);
    declared()(Node.prototype, name);
  }
  expect(writeJson(new Node(new Node(new Node(undefined))))).toBe('{"child":{"child":{}}}');
  expect(reads).toBe(3);
});

test('writes declared members in their order, and no others', () => {
  class Toy {}
  for (const name of ['id', 'name']) {
    ApiProperty({ type: Object })(Toy.prototype, name);
    declared()(Toy.prototype, name);
  }
  const members = [{ id: 1, name: 'Rex' }, { name: 'Rex', id: 1 }, { id: 1, secret: 2, name: 'Rex' }, { secret: 2 }];
  const toys = members.map((each) => Object.assign(new Toy(), each));
  const written = '{"id":1,"name":"Rex"}';
  expect(writeJson(toys)).toBe(`[${[written, written, written, '{}'].join()}]`);
});

test('writes all members with a rule where a class has none in the document, as one of @nestjs/mapped-types', () => {
  class Order {
    id = 1;
    @ValidateNested() lines = [{ count: 2 }];
    secret = 'not to be sent';
  }
  declared()(Order.prototype, 'id');
  expect(writeJson(new Order())).toBe('{"lines":[{"count":2}],"id":1}');
});

test('writes members that only our decorators name, as in a class of @nestjs/mapped-types, after the documented ones', () => {
  class Toy {}
  ApiProperty({ type: Object })(Toy.prototype, 'note');
  for (const name of ['id', 'name']) declared()(Toy.prototype, name);
  const toy = Object.assign(new Toy(), { id: 1, secret: 2, name: 'Rex', note: 'red' });
  expect(writeJson(toy)).toBe('{"note":"red","id":1,"name":"Rex"}');
});

test('lets JSON.stringify take an instance of a class that declares its members', () => {
  class Toy {
    @declared() ids: unknown;
  }
  const toy = Object.assign(new Toy(), { secret: 1, ids: [1n, INT64_MAX, { name: 'a' }] });
  expect(JSON.stringify([toy])).toBe(`[{"ids":[1,"${INT64_MAX}",{"name":"a"}]}]`);
  expect(writeJson([toy])).toBe(`[{"ids":[1,${INT64_MAX},{"name":"a"}]}]`);
  // A client may have sent it.
  Object.assign(toy, { constructor: 'sent' });
  expect(writeJson([toy])).toBe(`[{"ids":[1,${INT64_MAX},{"name":"a"}]}]`);
  class OwnToy extends Toy {
    @declared() name: unknown;

    toJSON(): string {
      return 'own';
    }
  }
  class Part extends PickType(Toy, ['ids']) {}
  const part = Object.assign(new Part(), { secret: 1, ids: [] });
  expect(JSON.stringify([part, new (PartialType(Toy))()])).toBe('[{"ids":[]},{}]');
  expect(checkDeclaredMembers).not.toThrow();
  expect([JSON.stringify(new OwnToy()), writeJson(new OwnToy())]).toEqual(['"own"', '"own"']);
});
