import { expect } from 'chai';
import { poolHref, readRoute, viewQuery, vmHref } from './route.js';

describe('The routes of the page', () => {
  const routes: readonly { hash: string; view: string; namespace?: string; name?: string }[] = [
    { hash: '', view: 'pools' },
    { hash: '#/vms?q=a', view: 'vms' },
    { hash: poolHref('a/b?c'), view: 'pool', name: 'a/b?c' },
    { hash: vmHref('team', 'vm%1'), view: 'vm', namespace: 'team', name: 'vm%1' },
    { hash: '#/constructor', view: 'pools' },
    { hash: '#/pool/%E0%A4%A', view: 'pool', name: '%E0%A4%A' },
  ];
  for (const { hash, view, namespace = '', name = '' } of routes) {
    it(`read "${hash}"`, () => {
      expect(readRoute(hash)).to.deep.include({ view, namespace, name });
    });
  }

  it('ask the server only for known parameters', () => {
    const route = readRoute('#/pool/blue?at=10.0.0.0&bits=8&sort=-use&other=x');
    expect(viewQuery(route)).to.equal('view=pool&namespace=&name=blue&sort=-use&at=10.0.0.0&bits=8');
  });
});
