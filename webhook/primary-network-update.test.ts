import { expect } from 'chai';
import { DEFAULT_NETWORK_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../api/names.js';
import {
  type Given,
  CLAIMED,
  VM1,
  WITH_MAC,
  annotationsAfter,
  launcherOf,
  requesting,
  update,
} from './testing/primary-review.js';

describe('a running launcher in a namespace with a primary network', () => {
  const WITH_REQUEST = { ...CLAIMED, [DEFAULT_NETWORK_ANNOTATION]: WITH_MAC };
  const updates: {
    name: string;
    before: Record<string, string>;
    after: Record<string, string>;
    given?: Given;
    kept?: Record<string, string>;
  }[] = [
    { name: 'keeps both annotations', before: WITH_REQUEST, after: WITH_REQUEST },
    { name: 'gets both annotations back if they are removed', before: WITH_REQUEST, after: {} },
    {
      name: 'gets its claim back if another one is named',
      before: CLAIMED,
      after: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' },
    },
    {
      name: 'gets no default network while it runs',
      before: CLAIMED,
      after: { ...CLAIMED, [DEFAULT_NETWORK_ANNOTATION]: WITH_MAC },
    },
    {
      name: 'keeps its request although its VMI requests something else now',
      before: WITH_REQUEST,
      after: WITH_REQUEST,
      given: { vmi: requesting({ default: ['192.168.1.10'] }) },
    },
    {
      name: 'keeps its annotations after its VMI and its primary network are gone',
      before: WITH_REQUEST,
      after: {},
      given: { vmis: [], nads: [] },
    },
    { name: 'gets no claim while it runs if it started without one', before: {}, after: CLAIMED },
    {
      name: 'may change a default network that is not that of a claim',
      before: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' },
      after: { [DEFAULT_NETWORK_ANNOTATION]: 'green' },
      kept: { [DEFAULT_NETWORK_ANNOTATION]: 'green' },
    },
  ];
  for (const { name, before, after, given, kept = before } of updates) {
    it(`${name} on UPDATE`, () => {
      const verdict = update(before, after, given);
      expect(annotationsAfter(verdict, launcherOf(VM1, after))).to.deep.equal(kept);
      expect(update(before, kept, given)).to.deep.include({ allowed: true, patch: [] });
    });
  }
});
