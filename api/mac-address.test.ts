import { expect } from 'chai';
import { parseLeaseMac, parseMac } from './mac-address.js';

describe('parseMac', () => {
  const cases: { given: string; expect: string | undefined }[] = [
    { given: '02:00:00:00:00:ab', expect: '02:00:00:00:00:ab' },
    { given: '02:00:00:00:00:AB', expect: '02:00:00:00:00:ab' },
    { given: '02-00-00-00-00-ab', expect: '02:00:00:00:00:ab' },
    { given: '0200.0000.00ab', expect: '02:00:00:00:00:ab' },
    { given: '02:00-00:00:00:ab', expect: undefined },
    { given: '02:00:00:00:00', expect: undefined },
    { given: '02:00:00:00:00:ab:cd:ef', expect: undefined },
    { given: '2:0:0:0:0:ab', expect: undefined },
    { given: '02000000000ab', expect: undefined },
    { given: ' 02:00:00:00:00:ab', expect: undefined },
    { given: '', expect: undefined },
  ];
  for (const { given, expect: wanted } of cases) {
    it(`reads ${JSON.stringify(given)} as ${wanted ?? 'nothing'}`, () => expect(parseMac(given)).to.equal(wanted));
  }
});

describe('parseLeasedMac', () => {
  const twenty = Array.from({ length: 20 }, () => '0a').join(':');
  const cases: { given: string; expect: string | undefined }[] = [
    { given: '02:00:00:00:00:AB', expect: '02:00:00:00:00:ab' },
    { given: '02-00-00-00-00-ab', expect: '02:00:00:00:00:ab' },
    { given: '02:00:00:00:00', expect: undefined },
    { given: twenty, expect: twenty },
    { given: `${twenty}:0a`, expect: undefined },
    { given: '0200.0000.00ab', expect: undefined },
    { given: '', expect: undefined },
  ];
  for (const { given, expect: wanted } of cases) {
    it(`reads ${JSON.stringify(given)} as ${wanted ?? 'nothing'}`, () => expect(parseLeaseMac(given)).to.equal(wanted));
  }
});
