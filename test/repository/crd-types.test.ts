import { expect } from 'chai';
import { COUNTS } from '../../addressing/address-states.js';
import { type StructuralSchema, readKinds } from '../../manifests/testing/structural-schema.js';
import { typesOf } from './crd-types.js';

describe('The TypeScript of a kind', () => {
  const text = { type: 'string' };
  const withSpec = (spec: StructuralSchema) => ({
    properties: { metadata: { type: 'object' }, spec },
    required: ['spec'],
  });
  const render = (schema: StructuralSchema) =>
    typesOf({ kind: 'Thing', schema }).slice(1).join('').replace(/\s+/g, ' ');

  it('has the types of fields, and which of them are required', () => {
    const properties = {
      plain: text,
      list: { type: 'array', items: text },
      map: { type: 'object', additionalProperties: { type: 'integer' } },
      choice: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
      inner: { type: 'object', required: ['flag'], properties: { flag: { type: 'boolean' } } },
      conditions: { type: 'array', items: { type: 'object' } },
    };
    expect(render(withSpec({ type: 'object', required: ['plain'], properties }))).to.equal(
      'export interface Thing extends KubeObject { spec: { plain: string; list?: string[]; map?: Record<string, number>; ' +
        `choice?: ("a" | "b")[]; inner?: { flag: boolean; }; conditions?: Condition[]; }; } `,
    );
  });

  it('describes fields with their bounds, and cannot be ended by a description', () => {
    const rendered = render({
      properties: {
        spec: { type: 'object', description: 'Ends */ here.', properties: {} },
        status: { type: 'array', description: 'Some texts.', maxItems: 4, items: text },
      },
    });
    expect(rendered).to.include('/** Ends * / here. */').and.to.include('/** Some texts. At most 4. */');
  });

  it('has the counts of a pool that the states of addresses have', async () => {
    const pool = (await readKinds()).find(({ kind }) => kind === 'AddressPool');
    const { properties = {}, required = [] } = pool?.schema.properties?.status?.properties?.ipv4 ?? {};
    expect(Object.keys(properties)).to.have.members(['capacity', ...COUNTS.map(({ field }) => field)]);
    const always = COUNTS.filter(({ isOptional }) => !isOptional).map(({ field }) => field);
    expect(required).to.have.members(['capacity', ...always]);
  });

  it('has no type that the schema does not say', () => {
    expect(() => render(withSpec({}))).to.throw('Thing.spec has the type undefined');
  });
});
