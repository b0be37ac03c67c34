import { expect } from 'chai';
import { textOf } from '../terminal.js';
import { errorOf, formatFindings, reportOf, warningOf } from './finding.js';

describe('a long list of findings', () => {
  const listOf = (length: number, findingOf: typeof errorOf, reason = 'SubnetExhausted') =>
    Array.from({ length }, (_, index) => ({ ...findingOf('claims', `vm${index}`, 'it waits', 'do it'), reason }));
  const headsOf = (...lists: ReturnType<typeof listOf>[]) =>
    formatFindings(lists.flat())
      .map(textOf)
      .filter((line) => !line.startsWith(' '));

  it('keeps an error that comes after many warnings', () => {
    const heads = headsOf(listOf(20, warningOf), listOf(1, errorOf));
    expect([heads[0], heads.at(-1)]).to.deep.equal([
      'ERROR vm0',
      'NOT SHOWN 1 more finding of the check claims (all of them: -o json)',
    ]);
    expect(heads).to.have.length(21);
  });

  it('shows a rare reason beside a frequent one', () => {
    const rare = { ...errorOf('claims', 'rare', 'it waits', 'do it'), reason: 'InvalidRequest' };
    expect(headsOf(listOf(500, errorOf), [rare])).to.include('ERROR rare');
  });

  it('is not cut if it is short', () => {
    expect(headsOf(listOf(20, errorOf))).to.have.length(20);
  });
});

describe('a report without findings', () => {
  it('names what was read of the only namespace that the user may read, and nothing else', () => {
    const observed = { refused: ['you may not list NADs'], onlyNamespace: 'lab', vms: [], claims: [], nads: undefined };
    const lastLine = (given: Parameters<typeof reportOf>[1]) => textOf(reportOf([], given).lines(false).at(-1) ?? '');
    expect(lastLine(observed)).to.equal('nothing is wrong with what was checked: VMs, claims of namespace lab');
    expect(lastLine({ ...observed, nads: [] })).to.include(': VMs, claims, NADs of namespace lab');
  });
});
