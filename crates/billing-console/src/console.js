// Improves pages of the console. Every page works without this script, which runs once per page.
//
// Attributes that the script looks for:
// - data-pick="customers": a text input for a reference; suggests objects of that part of the console while one types
// - data-made-from="name legal_name": a text input for the reference of a new object; shows the reference that is made from the first
//   filled field with one of the names, if the input stays empty
// - data-switch: contains a choice; the elements with data-for of the same group are visible while the choice has one of their
//   values
// - data-for="PACKAGE VOLUME": the values of the group's choice for which an element is visible
// - .of-date: a field that is visible only while the radio button with the value "day" of its form is selected
// - data-live: a form; shows the preview of its values in the element with data-result while one types
// - data-copy="text": a button that copies the text
// - data-all="name": a check box that selects all check boxes with the name in its form or table
'use strict';

(() => {
  const each = (selector, act, inside = document) => inside.querySelectorAll(selector).forEach((element) => act(element));

  /** Delays a function until it was not called for a while. */
  const later = (act, delay = 250) => {
    let timer;
    return (...args) => {
      clearTimeout(timer);
      timer = setTimeout(() => act(...args), delay);
    };
  };

  /** Suggests objects by name in a list below an input. The list replaces a list of the server. */
  const pick = (input) => {
    const list = document.createElement('datalist');
    list.id = `pick-${input.id || input.name}-${Math.random().toString(36).slice(2)}`;
    input.after(list);
    const name = document.createElement('span');
    name.className = 'picked';
    name.setAttribute('aria-live', 'polite');
    list.after(name);
    const names = new Map();
    let running;
    const tell = () => {
      name.textContent = names.get(input.value.trim()) ?? '';
    };
    const load = async () => {
      running?.abort();
      running = new AbortController();
      const address = `/console/pick/${input.dataset.pick}?q=${encodeURIComponent(input.value.trim())}`;
      try {
        const answer = await fetch(address, { signal: running.signal, headers: { Accept: 'application/json' } });
        if (!answer.ok) return;
        const found = await answer.json();
        list.replaceChildren(...found.map(([value, label]) => {
          names.set(value, label);
          return new Option(label, value);
        }));
        input.setAttribute('list', list.id);
        tell();
      } catch (error) {
        if (error.name !== 'AbortError') console.warn(error);
      }
    };
    const typed = later(load);
    input.addEventListener('focus', load, { once: true });
    input.addEventListener('input', () => {
      tell();
      if (!names.has(input.value.trim())) typed();
    });
    // Of many inputs, only the name of the one in use is looked up.
    if (input.value && document.querySelectorAll('input[data-pick]').length < 5) load();
  };

  /** Shows the reference that the server makes from a name if the input stays empty. */
  const propose = (input) => {
    const names = input.dataset.madeFrom.split(' ').map((name) => input.form.elements[name]).filter(Boolean);
    const load = async () => {
      const name = names.find((field) => field.value.trim())?.value ?? '';
      const answer = await fetch(`/console/reference?name=${encodeURIComponent(name)}`, { headers: { Accept: 'application/json' } });
      if (answer.ok) input.placeholder = await answer.json();
    };
    const typed = later(() => load().catch((error) => console.warn(error)));
    names.forEach((field) => field.addEventListener('input', typed));
    if (names.some((field) => field.value.trim())) typed();
  };

  /** Shows only the fields for the selected value of a choice. Hidden fields are not submitted. */
  const switches = (choice) => {
    const group = choice.closest('[data-group], form');
    each('details.others', (others) => { others.open = true; }, group);
    const show = () => {
      each('[data-for]', (part) => {
        if (part.closest('[data-group], form') !== group) return;
        const fits = !choice.value || part.dataset.for.split(' ').includes(choice.value);
        part.hidden = !fits;
        each('input, select, textarea, button', (field) => { field.disabled = !fits; }, part);
      }, group);
    };
    choice.addEventListener('change', show);
    show();
  };

  /** Shows the fields for a date only while the radio button for a date is selected. */
  const dates = (form) => {
    const radios = [...form.querySelectorAll('input[type=radio][value=day]')];
    if (radios.length === 0) return;
    const show = () => {
      const wanted = radios.some((radio) => radio.checked);
      each('.of-date', (field) => { field.hidden = !wanted; }, form);
    };
    form.addEventListener('change', show);
    show();
  };

  /** Returns the fields of a form, with the first lines of its file only. */
  const beginning = (form) => {
    const body = new FormData(form);
    for (const [name, file] of [...body]) {
      if (!(file instanceof File)) continue;
      if (file.name) body.set(name, file.slice(0, 65536), file.name);
      else body.delete(name);
    }
    return body;
  };

  /** Shows the preview of a form beside it. The server stores nothing for a request with the field `live`. */
  const live = (form) => {
    const result = form.querySelector('[data-result]') ?? document.querySelector('[data-result]');
    if (!result) return;
    let running;
    const load = later(async () => {
      running?.abort();
      if (!form.checkValidity()) return result.replaceChildren();
      running = new AbortController();
      const body = form.enctype === 'multipart/form-data' ? beginning(form) : new URLSearchParams(new FormData(form));
      body.set('live', 'yes');
      try {
        const answer = await fetch(form.action, { method: 'POST', body, signal: running.signal });
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const found = page.querySelector('[data-result]');
        if (answer.ok && found) result.replaceChildren(...found.childNodes);
        else result.replaceChildren();
      } catch (error) {
        if (error.name !== 'AbortError') console.warn(error);
      }
    }, 400);
    form.addEventListener('input', load);
    form.addEventListener('change', load);
    load();
  };

  const copies = (button) => {
    button.hidden = false;
    const label = button.textContent;
    button.addEventListener('click', async () => {
      // An address without a host is completed, so that it can be sent to others.
      const text = button.dataset.copy;
      await navigator.clipboard.writeText(text.startsWith('/') ? new URL(text, document.baseURI).href : text);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  };

  const selects = (all) => {
    const inside = all.closest('form, table') ?? document;
    const boxes = () => [...inside.querySelectorAll('input[type=checkbox]')].filter((box) => box.name === all.dataset.all);
    const label = all.closest('[hidden]');
    all.hidden = false;
    if (label) label.hidden = false;
    all.addEventListener('change', () => boxes().forEach((box) => { box.checked = all.checked; }));
    inside.addEventListener('change', () => {
      const checked = boxes().filter((box) => box.checked).length;
      all.checked = checked > 0 && checked === boxes().length;
      all.indeterminate = checked > 0 && !all.checked;
    });
  };

  document.documentElement.classList.add('scripted');
  each('input[data-pick]', pick);
  each('input[data-made-from]', propose);
  each('[data-switch] select', switches);
  each('form', dates);
  each('form[data-live]', live);
  each('button[data-copy]', copies);
  each('input[data-all]', selects);
})();
